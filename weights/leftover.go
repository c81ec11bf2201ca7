package weights

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

// Leftover is a file or folder beside a model's weights that a conversion of the model does not copy.
type Leftover struct {
	// Path is slash-separated and relative to the model's folder. The path of a folder ends with a slash.
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Reasons why a file is a [Leftover].
const (
	servesOther = "holds weights that are not converted"
	noPart      = "is not part of a model"
)

// otherWeightFiles are names of files whose weights a runtime could serve in place of the model's.
var otherWeightFiles = []string{"pytorch_model*.bin", "consolidated*.safetensors", "consolidated*.index.json", "tf_model*.h5", "*.h5", "flax_model*.msgpack", "*.msgpack", "*.pt", "*.pth",
	"*.ckpt", "*.gguf", "*.onnx", "*.onnx_data", "*.onnx.data", "rust_model.ot", "openvino_model*.bin", "openvino_model*.xml", "*.tflite"}

// noParts are names of files and folders that tools leave in a model's folder.
var noParts = []string{".git", ".cache", "__pycache__", ".ipynb_checkpoints", ".DS_Store"}

// Leftovers lists files with other weights than the model's, the index files of these weights, and files that are not part of
// a model. A file is not listed if a glob of keep matches its path, its name or its folder. A safetensors file that is no
// shard is listed if its name belongs to another format, or if its tensors have names of the model's tensors. A file that
// adds to the model, such as an adapter, is not listed.
func (m *Model) Leftovers(keep []string) (list []Leftover) {
	if m.Single {
		return nil
	}
	stays := func(file string) bool {
		return slices.ContainsFunc(keep, func(pattern string) bool { return matchesPath(pattern, file) })
	}
	other := map[string]bool{}
	var indices []string
	add := func(l Leftover) {
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	for _, file := range m.Others {
		folder, inNone := noPartOf(file)
		switch {
		case stays(file):
		case inNone:
			add(Leftover{folder, noPart})
		case m.servesOther(file):
			other[file] = true
			add(Leftover{file, servesOther})
		case strings.HasSuffix(file, ".index.json") && file != IndexName:
			indices = append(indices, file)
		}
	}
	for _, file := range indices {
		if m.indexesAny(file, other) {
			add(Leftover{file, servesOther})
		}
	}
	slices.SortFunc(list, func(a, b Leftover) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// Covers reports whether a file is the leftover, or lies in it.
func (l Leftover) Covers(file string) bool {
	return file == l.Path || strings.HasSuffix(l.Path, "/") && strings.HasPrefix(file, l.Path)
}

// noPartOf returns the file or the outermost folder with a name of noParts; ok is false if there is none.
func noPartOf(file string) (found string, ok bool) {
	parts := strings.Split(file, "/")
	for i, part := range parts {
		if slices.Contains(noParts, part) {
			found = strings.Join(parts[:i+1], "/")
			if i < len(parts)-1 {
				found += "/"
			}
			return found, true
		}
	}
	return "", false
}

// servesOther reports whether a file's weights could be served in place of the model's.
func (m *Model) servesOther(file string) bool {
	base := path.Base(file)
	if slices.ContainsFunc(otherWeightFiles, func(pattern string) bool { ok, _ := path.Match(pattern, base); return ok }) {
		return true
	}
	if !strings.HasSuffix(base, ".safetensors") || base == AdapterName {
		return false
	}
	opened, err := m.place.open([]string{file})
	if err != nil {
		return false
	}
	f := opened[0]
	defer f.Close()
	return slices.ContainsFunc(f.Tensors, func(t Info) bool { _, ok := m.Tensor(t.Name); return ok })
}

// indexesAny reports whether an index names one of the files.
func (m *Model) indexesAny(index string, files map[string]bool) bool {
	js, err := m.ReadFile(index, bounded.Index)
	var content struct {
		Map map[string]string `json:"weight_map"`
	}
	if err != nil || json.Unmarshal(js, &content) != nil {
		return false
	}
	for _, shard := range content.Map {
		if files[path.Join(path.Dir(index), shard)] {
			return true
		}
	}
	return strings.HasPrefix(path.Base(index), "pytorch_model")
}

// matchesPath reports whether a glob matches a file's path, its name, or a folder that it lies in.
func matchesPath(pattern, file string) bool {
	pattern = strings.TrimSuffix(pattern, "/")
	if ok, _ := path.Match(pattern, path.Base(file)); ok {
		return true
	}
	for at := file; at != "."; at = path.Dir(at) {
		if ok, _ := path.Match(pattern, at); ok {
			return true
		}
	}
	return false
}

// UnmatchedKeep returns the first glob that matches no file of [Model.Leftovers]; empty if every glob matches one.
func (m *Model) UnmatchedKeep(keep []string) string {
	all := m.Leftovers(nil)
	i := slices.IndexFunc(keep, func(pattern string) bool {
		return !slices.ContainsFunc(m.Others, func(file string) bool {
			return matchesPath(pattern, file) && slices.ContainsFunc(all, func(l Leftover) bool { return l.Covers(file) })
		})
	})
	if i < 0 {
		return ""
	}
	return keep[i]
}
