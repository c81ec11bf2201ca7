package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

// Names of the files that describe a model.
const (
	ConfigName         = "config.json"
	ModelOptConfigName = "hf_quant_config.json" // describes a quantisation by ModelOpt
	GPTQConfigName     = "quantize_config.json" // describes a quantisation by GPTQ or AWQ
)

// Model is an open model: a folder with one or several safetensors files, or a single such file.
type Model struct {
	// Dir is the model's folder; for a single file, the folder that contains the file.
	Dir string
	// Shards are the files with the model's tensors, by name.
	Shards []*File
	// Index is the index file's path; "" if the model has none.
	Index string
	// Adapter is the LoRA adapter in the model's folder; nil if there is none. It is not part of the model: Infos, Each and Size
	// leave it out.
	Adapter *File
	// AdapterConfig holds the bytes of adapter_config.json; nil if there is none.
	AdapterConfig []byte
	// Config holds the bytes of config.json; nil if there is none. For a single file it is the config.json beside the file.
	Config []byte
	// Others are the remaining files as slash-separated paths relative to Dir, sorted; config.json
	// and the index are among them. For a model given as a single file, they are the configs in the file's folder.
	Others []string
	// Single is true for a model given as a single file. The other files in Dir may belong to another model.
	Single bool
	// PartOf is the path of an index that lists the single file as one shard of several; "" if there is none.
	PartOf string
	place  place // the folder Dir
}

// Open opens a model folder or a single safetensors file. It reads and checks headers and maps the data without reading them.
// The shards of a folder are the files that its index names. Without an index the only shard is model.safetensors, or else
// the only safetensors file besides an adapter. A folder that holds only an adapter is an error. For other common formats and
// layouts, such as GGUF, the error names the format and the next step. If the path does not exist, errors.Is finds
// fs.ErrNotExist in the error. The caller closes the model.
func Open(path string) (*Model, error) {
	if path == "" {
		return nil, errors.New("no path was given: name a model's folder or a safetensors file")
	}
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		next := "name a model's folder, or a safetensors file"
		if hub := FromHub(path); hub != "" {
			next += "; " + hub
		}
		return nil, Absent(path, "there is no such file or folder: "+next)
	}
	if err != nil {
		return nil, err
	}
	m := &Model{Dir: path, Single: !st.IsDir()}
	if m.Single {
		m.Dir = filepath.Dir(path)
		m.place = disk(m.Dir)
		if err := m.openSingle(filepath.Base(path)); err != nil {
			m.Close()
			return nil, foreign(path, err)
		}
		return m, nil
	}
	m.place = disk(path)
	if err := m.openFolder(); err != nil {
		m.Close()
		return nil, foreign(path, err)
	}
	return m, nil
}

// openSingle opens a model that is a single file, with the configs in its folder.
func (m *Model) openSingle(name string) (err error) {
	if m.Shards, err = m.place.open([]string{name}); err != nil {
		return err
	}
	return m.configsBeside()
}

// configsBeside reads the config.json in a single file's folder and lists the configs. It reads none of them if an index shows
// that the file is one of several shards, or that the configs belong to another model.
func (m *Model) configsBeside() (err error) {
	index := m.Path(IndexName)
	weightMap, err := m.readIndex()
	if unread, ok := errors.AsType[*fs.PathError](err); ok && !errors.Is(unread, fs.ErrNotExist) {
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		names, file := shardsIn(weightMap), filepath.Base(m.Shards[0].Path)
		if !slices.Contains(names, file) {
			return nil
		}
		if len(names) > 1 {
			m.PartOf = index
			return nil
		}
	}
	for _, name := range []string{ConfigName, ModelOptConfigName, GPTQConfigName} {
		switch _, err := m.FileSize(name); {
		case err == nil:
			m.Others = append(m.Others, name)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	m.Config, err = m.ReadFile(ConfigName, bounded.Config)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

func (m *Model) openFolder() error {
	files, err := m.place.list()
	if err != nil {
		return err
	}
	names, weightMap, err := m.shardNames(files)
	if err != nil {
		return err
	}
	if m.Shards, err = m.place.open(names); err != nil {
		if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) && m.Index != "" {
			err = fmt.Errorf("%s names the shard %s, %w: download, copy or make it again (%w)", m.Index, filepath.Base(missing.Path), ErrShardMissing, missing.Err)
		}
		return err
	}
	if m.Index != "" {
		if err := checkIndex(m.Index, weightMap, m.Shards); err != nil {
			return err
		}
	}
	files = slices.DeleteFunc(files, func(file string) bool { return slices.Contains(names, file) })
	if err := m.openAdapter(files); err != nil {
		return err
	}
	m.Config, err = m.ReadFile(ConfigName, bounded.Config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m.Others = slices.DeleteFunc(files, func(file string) bool { return file == AdapterName })
	return nil
}

// shardNames returns the weight files among the folder's files, and the index's map if there is an index.
func (m *Model) shardNames(files []string) ([]string, map[string]string, error) {
	weightMap, err := m.readIndex()
	if err == nil {
		m.Index = m.Path(IndexName)
		return shardsIn(weightMap), weightMap, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, ".safetensors") && !strings.Contains(file, "/") && file != AdapterName {
			found = append(found, file)
		}
	}
	switch {
	case slices.Contains(found, "model.safetensors"):
		return []string{"model.safetensors"}, nil, nil
	case len(found) == 1:
		return found, nil, nil
	case len(found) == 0 && (slices.Contains(files, AdapterName) || slices.Contains(files, AdapterConfigName)):
		return nil, nil, m.adapterAlone()
	case len(found) == 0:
		return nil, nil, FileErrorf(m.Dir, "holds no safetensors file and no %s: a model's folder has *.safetensors and config.json: download the model, or give its folder", IndexName)
	}
	return nil, nil, FileErrorf(m.Dir, "holds %d safetensors files, but no index %s, which lists the files of the model: download the index, or give the one file that is the model", len(found), IndexName)
}

// listFiles returns the files of dir and its subfolders as slash-separated paths, sorted. Links to
// files count as files: the caches of model hubs consist of them. Pipes, devices and links that lead
// nowhere are errors.
func listFiles(dir string) (files []string, err error) {
	root, err := filepath.EvalSymlinks(dir) // WalkDir does not enter a link
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return FileErrorf(path, "is a link to a missing file: %w", err)
		case err != nil:
			return err
		case st.IsDir():
			return FileErrorf(path, "is a link to a folder: replace the link by the folder itself, or move the link elsewhere")
		case !st.Mode().IsRegular():
			return FileErrorf(path, "is neither a file nor a folder: move it out of the model's folder")
		}
		rel, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(files)
	return files, err
}

// Close unmaps all files. Close of a nil model returns [ErrNoModel].
func (m *Model) Close() error {
	if m == nil {
		return ErrNoModel
	}
	var errs []error
	for _, f := range m.Files() {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Files returns all files with tensors: the shards, then the adapter if there is one.
func (m *Model) Files() []*File {
	if m.Adapter == nil {
		return m.Shards
	}
	return append(slices.Clone(m.Shards), m.Adapter)
}

// Tensor returns the tensor of a name, from the model or else from its adapter; false if there is none.
func (m *Model) Tensor(name string) (Tensor, bool) {
	for _, f := range m.Shards {
		if t, ok := f.Tensor(name); ok {
			return t, true
		}
	}
	if m.Adapter != nil {
		return m.Adapter.Tensor(name)
	}
	return Tensor{}, false
}

// Infos returns the header entries of all tensors, shard by shard in the order of the data.
func (m *Model) Infos() []Info {
	var all []Info
	for _, f := range m.Shards {
		all = append(all, f.Tensors...)
	}
	return all
}

// Each calls fn for every tensor, shard by shard in the order of the data, and stops at the first
// error.
func (m *Model) Each(fn func(Tensor) error) error {
	for _, f := range m.Shards {
		if err := f.Each(fn); err != nil {
			return err
		}
	}
	return nil
}

// Size returns the number of bytes of all shards together.
func (m *Model) Size() int64 {
	var n int64
	for _, f := range m.Shards {
		n += f.Size()
	}
	return n
}
