package weights

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"golang.org/x/sync/errgroup"
)

// Store is a folder of an object store that holds a model. Its methods may be called from several goroutines.
type Store interface {
	// URL returns the folder's URL without a slash at its end.
	URL() string
	// List returns the objects below the folder, sorted by path.
	List(ctx context.Context) ([]Object, error)
	// ReadAt fills p with an object's bytes from byte at on. It is an error if the object's version is no longer o.Version.
	ReadAt(ctx context.Context, o Object, p []byte, at int64) error
}

// Object is a file of a [Store].
type Object struct {
	Path    string // slash-separated, relative to the folder
	Size    int64  // bytes
	Version string // changes with the contents
}

// Output is a file that is being written. After Close it is complete and durable. Abort removes it.
type Output interface {
	io.Writer
	Close() error
	Abort()
}

// PartsFolder is the folder with the records of a conversion's parts while the conversion writes to an object store. Its file
// [PartsName] names the object that is written last.
const (
	PartsFolder = ".lowtoggle-parts"
	PartsName   = "parts.json"
)

// OpenStore is [Open] for a model in an object store. Data is read when [Need] asks for it; ctx ends all reading. file names a
// single safetensors file in the store's folder; empty: the folder is the model. Object stores need a Unix system.
func OpenStore(ctx context.Context, s Store, file string) (*Model, error) {
	if s == nil {
		return nil, ErrNoStore
	}
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	place := &stored{ctx: ctx, store: s, objects: map[string]Object{}}
	for _, o := range list {
		if strings.HasPrefix(o.Path, PartsFolder+"/") {
			continue
		}
		place.objects[o.Path] = o
		place.names = append(place.names, o.Path)
	}
	m := &Model{Dir: s.URL(), Single: file != "", place: place}
	if len(list) == 0 {
		return nil, Absent(s.URL(), "there is no such folder: give a folder that holds a model")
	}
	if err := place.whole(list); err != nil {
		return nil, err
	}
	if m.Single {
		err = m.openSingle(file)
	} else {
		err = m.openFolder()
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// stored is a [place] in a [Store].
type stored struct {
	ctx     context.Context
	store   Store
	names   []string // sorted
	objects map[string]Object
}

// whole returns an error if the folder holds an unfinished conversion.
func (s *stored) whole(list []Object) error {
	i := slices.IndexFunc(list, func(o Object) bool { return o.Path == PartsFolder+"/"+PartsName })
	if i < 0 {
		return nil
	}
	js := make([]byte, min(list[i].Size, bounded.Config))
	if err := s.store.ReadAt(s.ctx, list[i], js, 0); err != nil {
		return err
	}
	var parts struct {
		Last string `json:"last"`
	}
	if json.Unmarshal(js, &parts) == nil {
		if _, ok := s.objects[parts.Last]; ok {
			return nil
		}
	}
	return FileErrorf(s.store.URL(), "holds an unfinished conversion: finish it with the command that started it, or give another folder")
}

func (s *stored) list() ([]string, error) { return slices.Clone(s.names), nil }

func (s *stored) path(name string) string { return s.store.URL() + "/" + name }

func (s *stored) object(name string) (Object, error) {
	o, ok := s.objects[name]
	if !ok {
		return o, &fs.PathError{Op: "open", Path: s.path(name), Err: fs.ErrNotExist}
	}
	return o, nil
}

func (s *stored) read(name string, most int64) ([]byte, error) {
	o, err := s.object(name)
	if err != nil {
		return nil, err
	}
	if o.Size > most {
		return nil, FileErrorf(s.path(name), "is too large: lowtoggle reads at most %d MiB: check that this is the right file", most>>20)
	}
	data := make([]byte, o.Size)
	return data, s.store.ReadAt(s.ctx, o, data, 0)
}

func (s *stored) reader(name string) (io.ReadCloser, error) {
	o, err := s.object(name)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bufio.NewReaderSize(&objectReader{s, o, 0}, int(min(max(o.Size, 16), requestBytes)))), nil
}

// objectReader reads an object from its start. Each Read sends one request.
type objectReader struct {
	*stored
	of Object
	at int64
}

func (r *objectReader) Read(p []byte) (int, error) {
	if r.at >= r.of.Size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), r.of.Size-r.at))
	if err := r.store.ReadAt(r.ctx, r.of, p[:n], r.at); err != nil {
		return 0, err
	}
	r.at += int64(n)
	return n, nil
}

func (s *stored) size(name string) (int64, error) {
	o, err := s.object(name)
	return o.Size, err
}

// open opens several shards at a time, because each needs a request.
func (s *stored) open(names []string) ([]*File, error) {
	files := make([]*File, len(names))
	g, _ := errgroup.WithContext(s.ctx)
	g.SetLimit(mostRequests)
	for i, name := range names {
		g.Go(func() (err error) {
			o, err := s.object(name)
			if err == nil {
				files[i], err = OpenObject(s.ctx, s.store, o)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		for _, f := range files {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		return nil, err
	}
	return files, nil
}

// OpenObject opens a safetensors file of a store, as [OpenFile] does on a disk.
func OpenObject(ctx context.Context, s Store, o Object) (*File, error) {
	if s == nil {
		return nil, ErrNoStore
	}
	url := s.URL() + "/" + o.Path
	if o.Size == 0 {
		return nil, &FormatError{File: url, Offset: 0, Msg: "the file is empty: copy it to the store again"}
	}
	r, err := newRemote(ctx, o.Size, func(ctx context.Context, p []byte, at int64) error { return s.ReadAt(ctx, o, p, at) })
	if err != nil {
		return nil, FileErrorf(url, "%w", err)
	}
	f := &File{Path: url, mapped: r.memory, remote: r, stamp: stampOfObject(o)}
	if err := f.checked(); err != nil {
		return nil, err
	}
	pages.mu.Lock()
	defer pages.mu.Unlock()
	for _, t := range f.Tensors {
		r.big = max(r.big, t.Size())
	}
	return f, nil
}

// IsURL reports whether a path is the URL of an object store, such as s3://bucket/folder. It returns false for addresses of web
// pages.
func IsURL(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && scheme != "http" && scheme != "https" && scheme != "" && !strings.ContainsAny(scheme, `/\.( `)
}
