package weights_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// Leftovers lists files with weights that could be served instead of the model's, files that are not part of a model, and no
// other file.
func TestLeftovers(t *testing.T) {
	config, err := synth.Config("llama-tiny")
	if err != nil {
		t.Fatal(err)
	}
	dir := testmodel.Folder(t, config, synth.Options{})
	shard, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	other := []byte("\x3c\x00\x00\x00\x00\x00\x00\x00" + `{"linear.weight":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`)
	other[0] = byte(len(other) - 8)
	other = append(other, 0)
	files := map[string][]byte{
		"pytorch_model-00001-of-00002.bin": nil, "pytorch_model.bin.index.json": []byte("{}"), "tf_model.h5": nil, "flax_model.msgpack": nil,
		"onnx/model.onnx": nil, "onnx/model.onnx_data": nil, "original/consolidated.00.pth": nil, "consolidated.safetensors": nil,
		"q4.gguf": nil, "optimizer.pt": nil, "fp16/model.safetensors": shard, "model.fp16.safetensors": shard,
		"fp16/model.safetensors.index.json": []byte(`{"weight_map": {"x": "model.safetensors"}}`),
		".git/HEAD":                         nil, ".git/objects/a": nil, ".cache/huggingface/x": nil, "a/__pycache__/b.pyc": nil, "a/.DS_Store": nil, ".ipynb_checkpoints/x": nil,
		// these stay
		".gitattributes": nil, ".gitignore": nil, "1_Dense/model.safetensors": other, "1_Dense/pytorch.json": nil, "training_args.bin": nil, "tokenizer.json": nil,
		"modeling.py": nil, "params.json": nil, "broken.safetensors": []byte("x"), "1_Dense/model.safetensors.index.json": []byte(`{"weight_map": {"x": "model.safetensors"}}`),
		"adapter_model.bin": nil, "a/gitdir": nil,
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	m := testmodel.Open(t, dir)
	paths := func(keep ...string) (list []string) {
		for _, l := range m.Leftovers(keep) {
			list = append(list, l.Path)
		}
		return list
	}
	want := []string{".cache/", ".git/", ".ipynb_checkpoints/", "a/.DS_Store", "a/__pycache__/", "consolidated.safetensors", "flax_model.msgpack", "fp16/model.safetensors",
		"fp16/model.safetensors.index.json", "model.fp16.safetensors", "onnx/model.onnx", "onnx/model.onnx_data", "optimizer.pt", "original/consolidated.00.pth",
		"pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json", "q4.gguf", "tf_model.h5"}
	if got := paths(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	want = slices.DeleteFunc(want, func(p string) bool {
		return slices.Contains([]string{".git/", "fp16/model.safetensors", "fp16/model.safetensors.index.json", "onnx/model.onnx", "q4.gguf"}, p)
	})
	if got := paths(".git", "fp16/", "*.onnx", "q?.gguf"); !slices.Equal(got, want) {
		t.Errorf("with --keep: %q, want %q", got, want)
	}
	if got := m.UnmatchedKeep([]string{"*.onnx", "tokenizer.json"}); got != "tokenizer.json" {
		t.Errorf("a pattern that keeps nothing: %q", got)
	}
	single := testmodel.Open(t, filepath.Join(dir, "model.safetensors"))
	if l := single.Leftovers(nil); l != nil {
		t.Errorf("of a single file: %v", l)
	}
	l := weights.Leftover{Path: "a/"}
	if !l.Covers("a/b") || l.Covers("ab") || (weights.Leftover{Path: "a"}).Covers("a/b") {
		t.Error("a folder covers what lies in it alone")
	}
}
