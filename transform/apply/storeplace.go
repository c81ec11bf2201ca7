package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Store is a folder of an object store for the output of a conversion. Objects appear whole or not at all. Names are
// slash-separated and relative to the folder.
type Store interface {
	weights.Store
	// Stat returns an object, and Read its content of at most most bytes. If there is no object, the error is
	// fs.ErrNotExist.
	Stat(ctx context.Context, name string) (weights.Object, error)
	Read(ctx context.Context, name string, most int64) ([]byte, error)
	// Write creates or replaces an object. If there is an object, WriteNew returns an fs.ErrExist.
	Write(ctx context.Context, name string, data []byte) error
	WriteNew(ctx context.Context, name string, data []byte) error
	// Create begins an object of n bytes.
	Create(ctx context.Context, name string, n int64) weights.Output
	// Remove removes an object. A missing object is no error.
	Remove(ctx context.Context, name string) error
}

// storePlace is a [place] in an object store. Shards are written to their final names, because objects cannot be
// renamed. The object last is written at the end; without it the folder is not a model. Files about the parts are in
// [weights.PartsFolder].
type storePlace struct {
	store Store
	last  string
}

// lastOf returns the name of the file that makes the output of a model whole: the index, or if there is none, the
// config.
func lastOf(m *weights.Model) string {
	switch {
	case m.Index != "":
		return weights.IndexName
	case slices.Contains(m.Others, weights.ConfigName):
		return weights.ConfigName
	}
	return plan.ManifestName
}

// about returns the name of a file about the parts.
func about(name string) string { return weights.PartsFolder + "/" + name }

func (p *storePlace) path(name string) string { return p.store.URL() + "/" + name }

func (p *storePlace) finished(ctx context.Context) (*plan.Manifest, error) {
	if _, err := p.store.Stat(ctx, p.last); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	js, err := p.store.Read(ctx, plan.ManifestName, bounded.Plan)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (this folder has no %s)", taken(p.store.URL()), plan.ManifestName)
	}
	if err != nil {
		return nil, err
	}
	return plan.DecodeManifest(p.path(plan.ManifestName), js)
}

func (p *storePlace) checkFree(ctx context.Context) error {
	list, err := p.store.List(ctx)
	if err != nil {
		return err
	}
	for _, o := range list {
		if o.Path == about(partsName) {
			return fs.ErrExist
		}
	}
	if slices.ContainsFunc(list, func(o weights.Object) bool { return !strings.HasPrefix(o.Path, about(plansName)+"/") }) {
		return taken(p.store.URL())
	}
	return nil
}

func (p *storePlace) begun() error { return nil }

func (p *storePlace) read(ctx context.Context, name string) ([]byte, error) {
	return p.store.Read(ctx, about(name), bounded.Config)
}

func (p *storePlace) create(ctx context.Context, name string, data []byte) error {
	err := p.store.WriteNew(ctx, about(name), data)
	if errors.Is(err, fs.ErrExist) { // perhaps by an attempt whose answer was lost
		if was, readErr := p.read(ctx, name); readErr == nil && bytes.Equal(was, data) {
			return nil
		}
	}
	return err
}

func (p *storePlace) write(ctx context.Context, name string, data []byte) error {
	return p.store.Write(ctx, about(name), data)
}

// work and lockFinish lock nothing, because stores have no locks. Two calls for the same part write the same bytes.
func (p *storePlace) work(int) (work, error)         { return storeWork{p}, nil }
func (p *storePlace) lockFinish() (io.Closer, error) { return storeWork{p}, nil }

type storeWork struct{ *storePlace }

func (w storeWork) create(ctx context.Context, src *weights.File, head []byte, dataLen int64) (weights.Output, error) {
	out := w.store.Create(ctx, filepath.Base(src.Path), int64(len(head))+dataLen)
	if _, err := out.Write(head); err != nil {
		out.Abort()
		return nil, err
	}
	return out, nil
}

func (w storeWork) add(ctx context.Context, shard string) (int64, string, error) {
	return w.stat(ctx, shard)
}
func (w storeWork) Close() error { return nil }

// unwritten returns the same error for all parts. A store shows new objects at once.
func (p *storePlace) unwritten(int) error {
	return errors.New("is not written: its part has not ended")
}
func (p *storePlace) refresh() {}

func (p *storePlace) stat(ctx context.Context, shard string) (int64, string, error) {
	o, err := p.store.Stat(ctx, shard)
	return o.Size, o.Version, err
}

func (p *storePlace) header(ctx context.Context, shard string) (*weights.File, error) {
	o, err := p.store.Stat(ctx, shard)
	if err != nil {
		return nil, err
	}
	return weights.OpenObject(ctx, p.store, o)
}

func (p *storePlace) digest(ctx context.Context, shard string) (string, error) {
	o, err := p.store.Stat(ctx, shard)
	if err != nil {
		return "", err
	}
	return digestOfReader(ctx, io.NewSectionReader(objectAt{ctx, p.store, o}, 0, o.Size), func(int) {})
}

// objectAt reads an object as an [io.ReaderAt].
type objectAt struct {
	ctx   context.Context
	store Store
	weights.Object
}

func (o objectAt) ReadAt(b []byte, at int64) (int, error) {
	if err := o.store.ReadAt(o.ctx, o.Object, b, at); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *storePlace) results(ctx context.Context) (names []string, err error) {
	list, err := p.store.List(ctx)
	for _, o := range list {
		if !strings.HasPrefix(o.Path, weights.PartsFolder+"/") {
			names = append(names, o.Path)
		}
	}
	return names, err
}

// publish writes the last object after all other objects.
func (p *storePlace) publish(ctx context.Context, c *conversion, man *plan.Manifest) error {
	files := map[string]plan.File{}
	for _, s := range man.Shards {
		size, _, err := p.stat(ctx, s.File)
		if err != nil {
			return err
		}
		files[s.File] = plan.File{Path: s.File, Size: size, SHA256: s.Output}
	}
	for _, name := range c.others() {
		to := name
		if name == p.last { // the name it has until the end
			to = about(name)
		}
		file, err := p.copyOther(ctx, c, name, to)
		if err != nil {
			return err
		}
		files[name] = file
	}
	text, err := c.card(ctx, func() (*weights.Model, error) { return weights.OpenStore(ctx, almost{p.store, p.last}, "") })
	if err != nil {
		return err
	}
	if text != nil {
		if err := p.store.Write(ctx, card.Name, text); err != nil {
			return err
		}
		files[card.Name] = plan.File{Path: card.Name, Size: int64(len(text)), SHA256: hex.EncodeToString(digestOf(text))}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		man.Files = append(man.Files, files[name])
	}
	js, err := man.Encode()
	if err != nil {
		return err
	}
	if err := p.store.Write(ctx, plan.ManifestName, js); err != nil || p.last == plan.ManifestName {
		return err
	}
	_, err = p.copyOther(ctx, c, p.last, p.last)
	return err
}

// almost is the folder of a result before its last object has its final name.
type almost struct {
	Store
	last string
}

// List returns the objects with their final names.
func (a almost) List(ctx context.Context) ([]weights.Object, error) {
	list, err := a.Store.List(ctx)
	kept := list[:0]
	for _, o := range list {
		if o.Path == about(a.last) {
			o.Path = a.last
		}
		if !strings.HasPrefix(o.Path, weights.PartsFolder+"/") {
			kept = append(kept, o)
		}
	}
	slices.SortFunc(kept, func(a, b weights.Object) int { return strings.Compare(a.Path, b.Path) })
	return kept, err
}

// ReadAt reads an object. The last object is read under its temporary name.
func (a almost) ReadAt(ctx context.Context, o weights.Object, p []byte, at int64) error {
	if o.Path == a.last {
		o.Path = about(a.last)
	}
	return a.Store.ReadAt(ctx, o, p, at)
}

// copyOther copies one of the source's other files, and returns its description.
func (p *storePlace) copyOther(ctx context.Context, c *conversion, name, to string) (file plan.File, err error) {
	from, size, err := c.other(name)
	if err != nil {
		return file, err
	}
	defer from.Close()
	sum := sha256.New()
	out := p.store.Create(ctx, to, size)
	n, err := io.Copy(io.MultiWriter(out, sum), from)
	if err != nil {
		out.Abort()
	} else {
		err = out.Close()
	}
	return plan.File{Path: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// remove removes parts.json last, because a later call recognises the other objects by this file.
func (p *storePlace) remove(ctx context.Context) error {
	list, err := p.store.List(ctx)
	if err != nil {
		return err
	}
	for _, o := range list {
		if strings.HasPrefix(o.Path, weights.PartsFolder+"/") && o.Path != about(partsName) {
			if err := p.store.Remove(ctx, o.Path); err != nil {
				return err
			}
		}
	}
	return p.store.Remove(ctx, about(partsName))
}

// runStored is [Run] for an object store. It runs the conversion in one part.
func runStored(ctx context.Context, src Source, p *plan.Plan, out string, o Options) (*plan.Manifest, error) {
	po := PartOptions{Workers: o.Workers, Version: o.Version, Progress: o.Progress, Store: o.Store, Card: o.Card, Folder: o.Folder}
	f, err := newPartsFolder(out, o.Store, src.Model, p, 1, o.Version)
	if err != nil {
		return nil, err
	}
	if o.Resume { // an earlier call may have finished
		if man, err := f.finishedBefore(ctx); err != nil || man != nil {
			return man, errors.Join(err, f.remove(ctx))
		}
	} else {
		if _, err := o.Store.Stat(ctx, about(partsName)); err == nil {
			return nil, weights.FileErrorf(o.Store.URL(), "%w: resume the conversion, or choose another folder", ErrUnfinished)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	js, err := p.Encode()
	if err == nil {
		err = f.checkFree(ctx)
	}
	if err == nil {
		err = f.write(ctx, planName(f.Plan), js)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) || errors.Is(err, ErrOut) {
		return nil, Temporary(err, out)
	}
	if _, err := runPart(ctx, src, p, out, Part{1, 1}, po); err != nil {
		return nil, keptInStore(ctx, o.Store, err)
	}
	man, _, err := finish(ctx, src, p, out, po)
	return man, keptInStore(ctx, o.Store, err)
}

// plansName is the folder for the plans of conversions that were not begun in parts. If several conversions begin at
// the same time, the conversion that creates partsName continues. The digest in partsName identifies its plan.
const plansName = "plans"

// planName returns the name of the plan with this digest.
func planName(digest string) string { return plansName + "/" + digest + ".json" }

// UnfinishedIn is [Unfinished] for an object store.
func UnfinishedIn(ctx context.Context, s Store) (*plan.Plan, error) {
	if s == nil {
		return nil, weights.ErrNoStore
	}
	var was common
	js, err := s.Read(ctx, about(partsName), bounded.Config)
	if err == nil {
		if err := json.Unmarshal(js, &was); err != nil {
			return nil, fmt.Errorf("%s/%s: %w: choose another folder", s.URL(), about(partsName), err)
		}
		js, err = s.Read(ctx, about(planName(was.Plan)), bounded.Plan)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return plan.Decode(js)
}

// keptInStore adds to an error that finished shards are kept.
func keptInStore(ctx context.Context, s Store, err error) error {
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, ErrOther) {
		return err
	}
	if ctx.Err() == nil {
		if _, absent := s.Stat(ctx, about(partsName)); absent != nil { // nothing was begun, or the store does not answer
			return Temporary(err, s.URL())
		}
	}
	return Temporary(resumable{fmt.Errorf("%w: finished shards are kept in %s; resume to continue", err, s.URL())}, s.URL())
}

// Finished returns the manifest of a finished conversion in an object store; nil if there is none.
func Finished(ctx context.Context, s Store, m *weights.Model) (*plan.Manifest, error) {
	switch {
	case s == nil:
		return nil, weights.ErrNoStore
	case m == nil:
		return nil, weights.ErrNoModel
	}
	return (&storePlace{s, lastOf(m)}).finished(ctx)
}
