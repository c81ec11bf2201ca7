package weights

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzIndex: an index is refused, or names files of its own folder only.
func FuzzIndex(f *testing.F) {
	js, err := os.ReadFile("testdata/llama-17m.index.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(js)
	f.Add(EncodeIndex(map[string]string{"a": "1.safetensors", "b": "2.safetensors"}, 12))
	f.Add([]byte(`{"metadata": {"total_size": [[{}]]}, "weight_map": {"a": "../b", "a": "b"}}`))
	f.Fuzz(func(t *testing.T, js []byte) {
		weightMap, err := parseIndex(js)
		if err != nil {
			return
		}
		if len(weightMap) == 0 {
			t.Error("an index without tensors")
		}
		for _, shard := range shardsIn(weightMap) {
			if filepath.Dir(filepath.Join("m", shard)) != "m" {
				t.Errorf("%q lies elsewhere", shard)
			}
		}
	})
}

// FuzzFolder: a folder with any contents of its describing files is opened, or refused with an error that names the folder.
func FuzzFolder(f *testing.F) {
	for kind := range len(described) {
		f.Add([]byte(`{"_class_name": "FluxPipeline", "base_model_name_or_path": "a/b", "model_type": "llama"}`), byte(kind))
		f.Add([]byte("ref: refs/heads/main\n"), byte(kind))
		f.Add([]byte{0x80, 2}, byte(kind))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		path := filepath.Join(dir, described[int(kind)%len(described)])
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		if m, err := Open(dir); err == nil {
			m.Close()
		} else if err.Error() == "" {
			t.Error("no message")
		}
	})
}

// described are files that show the format of a folder without safetensors files.
var described = []string{"model_index.json", AdapterConfigName, ConfigName, IndexName, "model.gguf", "pytorch_model.bin", "a.zip", "model.safetensors"}
