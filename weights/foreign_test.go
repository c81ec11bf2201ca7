package weights

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// zipOf is the start of a zip archive whose first file has a name.
func zipOf(name string) []byte {
	head := append([]byte("PK\x03\x04"), make([]byte, 26)...)
	binary.LittleEndian.PutUint16(head[26:], uint16(len(name)))
	return append(append(head, name...), "data"...)
}

// TestRecognise: a file's format follows from its first bytes, and a file that is one byte too short has no known format.
func TestRecognise(t *testing.T) {
	tar := append(make([]byte, 257), "ustar\x00"...)
	for _, test := range []struct{ head, want string }{
		{"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer, not the weights"},
		{"GGUF\x03\x00\x00\x00\x00", "a GGUF file"},
		{"GGUF\x03\x00\x00\x00", ""}, // eight bytes tell nothing
		{string(zipOf("archive/data.pkl")), "a pickle of PyTorch"},
		{string(zipOf("archive/data.pkk")), "a zip archive"},
		{string(zipOf("archive/data.pkl"))[:30], "a zip archive"},
		{string(zipOf("archive/data.pkl"))[:29], "a zip archive"},
		{string(zipOf("archive/data.pkl"))[:46], "a pickle of PyTorch"}, // the name ends the file
		{string(zipOf("archive/data.pkl"))[:45], "a zip archive"},
		{"\x80\x02}q\x00(X\x01\x00", "a pickle of PyTorch"},
		{"\x80\x05}q\x00(X\x01\x00", "a pickle of PyTorch"},
		{"\x80\x01}q\x00(X\x01\x00", ""},
		{"\x80\x06}q\x00(X\x01\x00", ""},
		{"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00", "a gzip archive"},
		{"\x28\xb5\x2f\xfd\x00\x00\x00\x00\x00", "a zstd archive"},
		{"\xfd7zXZ\x00\x00\x00\x00", "an xz archive"},
		{"BZh91AY&SY\x00", "a bzip2 archive"},
		{string(tar), "a tar archive"},
		{string(tar[:262]), ""},
		{"text", "a text file"},
		{"txt", ""},            // three bytes may begin a safetensors file
		{"\x80\x02}q\x00", ""}, // a pickle of five bytes
		{"<!DOCTYPE html>", "a text file"},
		{"lines\nof\ttext\r\n", "a text file"},
		{"naïve façade é", "a text file"},
		{"naïve façade é"[:15], "a text file"}, // the last character is cut
		{"a long smile 😀"[:16], "a text file"}, // three bytes of four
		{"a long smile \xf0\x9f\x98\x80\xf0\x9f\x98\xff", ""},
		{"a bell \a rings", ""},
		{"text\xff and more text", ""},
		{"\x08\x00\x00\x00\x00\x00\x00\x00{damaged}", ""}, // safetensors
		{"\x00\xe1\xf5\x05\x00\x00\x00\x00{", ""},         // with the longest header
	} {
		path := filepath.Join(t.TempDir(), "file")
		put(t, filepath.Dir(path), "file", []byte(test.head))
		if got := Recognise(path); got != test.want {
			t.Errorf("%q is %q, want %q", test.head, got, test.want)
		}
	}
	if got := Recognise(t.TempDir()); got != "" {
		t.Errorf("a folder is %q", got)
	}
	// Bytes behind the first 512 do not count.
	path := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(path), "file", append([]byte(strings.Repeat("a", headLen)), 0))
	if got := Recognise(path); got != "a text file" {
		t.Errorf("512 characters and a zero byte are %q", got)
	}
}

// TestForeignFolders: for folders whose model is elsewhere or in another format, the error gives the next step.
func TestForeignFolders(t *testing.T) {
	model := shard(t, "a")
	for _, test := range []struct {
		name  string
		files map[string][]byte
		want  string // DIR is the folder; END stands for the advice to save as safetensors
	}{
		{"cached model", map[string][]byte{"snapshots/b/model.safetensors": model, "snapshots/a/model.safetensors": model, "refs/main": []byte("b\n")},
			"DIR: is the folder of one model in the Hugging Face Hub's cache: give its snapshot DIR/snapshots/b"},
		{"cached model, no branch", map[string][]byte{"snapshots/b/model.safetensors": model, "snapshots/a/model.safetensors": model, "blobs/x": nil},
			"DIR: is the folder of one model in the Hugging Face Hub's cache: give its snapshot DIR/snapshots/a"},
		{"cached model, branch elsewhere", map[string][]byte{"snapshots/a/model.safetensors": model, "snapshots/x": nil, "refs/main": []byte("../snapshots/a")},
			"DIR: is the folder of one model in the Hugging Face Hub's cache: give its snapshot DIR/snapshots/a"},
		{"cached model, branch of another snapshot", map[string][]byte{"snapshots/a/model.safetensors": model, "refs/main": []byte("c")},
			"DIR: is the folder of one model in the Hugging Face Hub's cache: give its snapshot DIR/snapshots/a"},
		{"cached model without snapshots", map[string][]byte{"snapshots/x": nil, "refs/main": []byte("b")},
			"DIR: is the folder of one model in the Hugging Face Hub's cache: it has no snapshot: download the model again"},
		{"cache", map[string][]byte{"a/x": nil, "models--m/snapshots/b/model.safetensors": model},
			"DIR: is the Hugging Face Hub's cache: give a model's snapshot in it, such as DIR/models--m/snapshots/b"},
		{"cache of an empty model first", map[string][]byte{"models--a/refs/x": nil, "models--m/snapshots/b/model.safetensors": model},
			"DIR: is the Hugging Face Hub's cache: give a model's snapshot in it, such as DIR/models--m/snapshots/b"},
		{"snapshots alone", map[string][]byte{"snapshots/a/model.safetensors": model},
			"DIR: holds no safetensors file and no model.safetensors.index.json: a model's folder has *.safetensors and config.json: download the model, or give its folder"},
		{"pipeline", map[string][]byte{"model_index.json": []byte(`{"_class_name": "P"}`), "unet/x": nil},
			"DIR: is a diffusion pipeline (model_index.json): give the subfolder of one of its models, such as DIR/unet"},
		{"pipeline of two", map[string][]byte{"model_index.json": []byte(`{"_class_name": "P"}`), "unet/x": nil, "transformer/x": nil},
			"DIR: is a diffusion pipeline (model_index.json): give the subfolder of one of its models, such as DIR/transformer"},
		{"pipeline of others", map[string][]byte{"model_index.json": []byte(`{"_class_name": "P"}`)},
			"DIR: is a diffusion pipeline (model_index.json): give the subfolder of one of its models"},
		{"another index", map[string][]byte{"model_index.json": []byte(`{}`)},
			"DIR: holds no safetensors file and no model.safetensors.index.json: a model's folder has *.safetensors and config.json: download the model, or give its folder"},
		{"diffusion shards", map[string][]byte{"diffusion_pytorch_model.safetensors.index.json": []byte(`{}`), "a.safetensors": model, "b.safetensors": model},
			"DIR: is a diffusion model in several shards: make a copy of the folder (links will do), rename diffusion_pytorch_model.safetensors.index.json there to model.safetensors.index.json, and give the copy"},
		{"pickle", map[string][]byte{"pytorch_model.bin": zipOf("a/data.pkl")}, "DIR/pytorch_model.bin: is a pickle of PyTorch: END"},
		{"pickle in parts", map[string][]byte{"pytorch_model-1.bin": []byte("text of LFS")}, "DIR: has no safetensors file, but pytorch_model-1.bin: END"},
		{"pickle of an unknown kind", map[string][]byte{"consolidated.00.pth": {1, 2, 3}}, "DIR: has no safetensors file, but consolidated.00.pth: END"},
		{"GGUF", map[string][]byte{"m.gguf": []byte("GGUF\x03\x00\x00\x00\x00")},
			"DIR/m.gguf: is a GGUF file: lowtoggle reads safetensors, and the quantised weights of GGUF cannot be converted back: download the original model of this GGUF file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, test.files)
			m, err := Open(dir)
			if m != nil {
				m.Close()
			}
			wantError(t, err, strings.NewReplacer("DIR", dir, "END", saveAsSafetensors).Replace(test.want))
		})
	}
}

// TestFromHub: a model's name on the Hub is distinguished from the path of a file and from a folder that exists.
func TestFromHub(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("here", 0o777); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"org/model": "org/model", "org/model/": "org/model", "hf://org/m-1.5_b": "org/m-1.5_b", "https://huggingface.co/org/model": "org/model",
		"here/model": "", "org/model.safetensors": "", "org/config.json": "", "org/w.bin": "", "org/w.gguf": "", "org": "", "a/b/c": "", "/org/model": "", "../model": "",
	} {
		advice := FromHub(path)
		if want == "" && advice != "" || want != "" && !strings.HasSuffix(advice, "give the folder "+want+":\n    hf download "+want+" --local-dir "+want) {
			t.Errorf("%s: %q", path, advice)
		}
	}
}
