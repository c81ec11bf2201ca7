package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

// headLen is the number of bytes that are read to recognise a file's format. A tar archive's mark ends at byte 262.
const headLen = 512

// foreignFiles are the formats that users pass instead of safetensors. The first match counts; next says what to do.
var foreignFiles = []struct {
	is      string
	matches func(head []byte) bool
	next    string
}{
	{"a Git LFS pointer, not the weights", startsWith("version https://git-lfs.github.com/spec/"),
		"install Git LFS and run git lfs pull in the clone of its repository, or download the file again"},
	{"a GGUF file", startsWith("GGUF"),
		"lowtoggle reads safetensors, and the quantised weights of GGUF cannot be converted back: download the original model of this GGUF file"},
	{"a pickle of PyTorch", isPickle,
		saveAsSafetensors},
	{"a zip archive", startsWith("PK\x03\x04"), unpack("unzip FILE -d NEW")},
	{"a gzip archive", startsWith("\x1f\x8b\x08"), unpack("tar -xf FILE -C NEW, or gunzip --keep for a single file")},
	{"a zstd archive", startsWith("\x28\xb5\x2f\xfd"), unpack("tar -xf FILE -C NEW, or zstd -d for a single file")},
	{"an xz archive", startsWith("\xfd7zXZ\x00"), unpack("tar -xf FILE -C NEW, or xz --decompress --keep for a single file")},
	{"a bzip2 archive", startsWith("BZh"), unpack("tar -xf FILE -C NEW, or bunzip2 --keep for a single file")},
	{"a tar archive", func(head []byte) bool { return len(head) > 262 && string(head[257:262]) == "ustar" }, unpack("tar -xf FILE -C NEW")},
	{text, isText, "a model's weights are in safetensors files: give the model's folder; if this file should hold weights, download it again"},
}

const text = "a text file"

// isText reports whether head is UTF-8 without control characters. The last character may be cut.
func isText(head []byte) bool {
	for range utf8.UTFMax - 1 {
		if len(head) > 0 && !utf8.Valid(head) {
			head = head[:len(head)-1]
		}
	}
	return utf8.Valid(head) && !bytes.ContainsFunc(head, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

// Recognise returns the format of a file that is not safetensors, such as "a GGUF file" or "a text file"; "" if the format is unknown.
func Recognise(path string) string {
	is, _ := recognise(path)
	return is
}

// recognise returns a file's format by its first bytes, and the next step for the user.
func recognise(path string) (is, next string) {
	head := readHead(path)
	short := len(head) < 9
	if len(head) < 4 || !short && head[8] == '{' && binary.LittleEndian.Uint64(head) <= MaxHeader { // perhaps a damaged safetensors file
		return "", ""
	}
	for _, f := range foreignFiles {
		if short && f.is != text { // other formats need more bytes
			continue
		}
		if f.matches(head) {
			return f.is, f.next
		}
	}
	return "", ""
}

const saveAsSafetensors = `save the model as safetensors in a new folder, by from_pretrained(FOLDER, dtype="auto") and save_pretrained(NEW) of transformers; loading a pickle can run code, so load only files whose author you trust`

func startsWith(magic string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

func unpack(command string) string {
	return "unpack it into a new folder (" + command + "), and give the model's folder inside"
}

// isPickle reports whether head begins a file of torch.save: a zip archive that starts with data.pkl, or a bare pickle.
func isPickle(head []byte) bool {
	if startsWith("PK\x03\x04")(head) && len(head) >= 30 {
		name := head[30:min(30+int(binary.LittleEndian.Uint16(head[26:])), len(head))]
		return bytes.HasSuffix(name, []byte("/data.pkl"))
	}
	return head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 // PROTO, and its version
}

// foreign returns an error with the file format of path and the next step for the user. If it does not recognise the format,
// it returns err, the error of opening path.
func foreign(path string, err error) error {
	if format, ok := errors.AsType[*FormatError](err); ok {
		if format.File != path && filepath.Ext(format.File) == ".json" { // a config or index: its own error is clearer
			return err
		}
		if f := foreignFile(format.File); f != nil {
			return f
		}
		return err
	}
	for _, recognise := range []func(dir string) error{hubCache, pipeline, shardedPart, otherWeights} {
		if f := recognise(path); f != nil {
			return f
		}
	}
	return err
}

// foreignFile returns an error if a file's first bytes belong to another format.
func foreignFile(path string) error {
	if is, next := recognise(path); is != "" {
		return &FormatError{File: path, Offset: -1, Msg: "is " + is + ": " + next}
	}
	return nil
}

// readHead returns the first bytes of a regular file; nil for all others.
func readHead(path string) []byte {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() { // opening a pipe would wait
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, headLen)
	n, _ := io.ReadFull(f, head)
	return head[:n]
}

// hubCache returns an error if dir is the cache of the Hugging Face Hub, or the folder of one model in the cache.
func hubCache(dir string) error {
	if isFolder(dir, "snapshots") && (isFolder(dir, "refs") || isFolder(dir, "blobs")) {
		const is = "%s: is the folder of one model in the Hugging Face Hub's cache: "
		if snapshot := snapshotOf(dir); snapshot != "" {
			return fmt.Errorf(is+"give its snapshot %s", dir, snapshot)
		}
		return fmt.Errorf(is+"it has no snapshot: download the model again", dir)
	}
	for _, name := range folders(dir) {
		if strings.HasPrefix(name, "models--") {
			if snapshot := snapshotOf(filepath.Join(dir, name)); snapshot != "" {
				return FileErrorf(dir, "is the Hugging Face Hub's cache: give a model's snapshot in it, such as %s", snapshot)
			}
		}
	}
	return nil
}

// snapshotOf returns the snapshot that a cached model's main branch names, or else the first snapshot; "" if there is none.
func snapshotOf(root string) string {
	snapshots := filepath.Join(root, "snapshots")
	if main := strings.TrimSpace(string(readHead(filepath.Join(root, "refs", "main")))); isFileName(main) && isFolder(snapshots, main) {
		return filepath.Join(snapshots, main)
	}
	if names := folders(snapshots); len(names) > 0 {
		return filepath.Join(snapshots, names[0])
	}
	return ""
}

// pipeline returns an error if dir is a diffusion pipeline, whose models are in subfolders.
func pipeline(dir string) error {
	js, err := bounded.ReadFile(filepath.Join(dir, "model_index.json"), bounded.Config)
	var index struct {
		Class string `json:"_class_name"`
	}
	if err != nil || json.Unmarshal(js, &index) != nil || index.Class == "" {
		return nil
	}
	next := "give the subfolder of one of its models"
	for _, part := range []string{"transformer", "unet"} {
		if isFolder(dir, part) {
			next += ", such as " + filepath.Join(dir, part)
			break
		}
	}
	return FileErrorf(dir, "is a diffusion pipeline (model_index.json): %s", next)
}

// shardedPart returns an error if dir is a diffusion model in several shards, whose index is not named [IndexName].
func shardedPart(dir string) error {
	const index = "diffusion_pytorch_model.safetensors.index.json"
	if st, err := os.Stat(filepath.Join(dir, index)); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s: is a diffusion model in several shards: make a copy of the folder (links will do), rename %s there to %s, and give the copy",
		dir, index, IndexName)
}

// otherWeights returns an error that names weights of other formats in a folder without safetensors files.
func otherWeights(dir string) error {
	for _, pattern := range []string{"*.safetensors", "*.gguf", "pytorch_model*.bin", "consolidated*.pth"} {
		files, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil || len(files) == 0 {
			continue
		}
		path := filepath.Join(dir, files[0])
		if is := Recognise(path); pattern[0] != '*' && (is == "" || is == text) {
			return FileErrorf(dir, "has no safetensors file, but %s: %s", files[0], saveAsSafetensors)
		}
		return foreignFile(path)
	}
	return nil
}

func isFolder(dir, name string) bool {
	st, err := os.Stat(filepath.Join(dir, name))
	return err == nil && st.IsDir()
}

// folders lists the subfolders of dir, sorted.
func folders(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// hubName is the name of a model on the Hugging Face Hub, or its page.
var hubName = regexp.MustCompile(`^(?:https://huggingface\.co/|hf://)?(([A-Za-z0-9][\w.-]*)/[A-Za-z0-9][\w.-]*)/?$`)

// FromHub returns advice on downloading a model if path may be a model's name on the Hugging Face Hub. It returns "" if path
// or its first folder exists.
func FromHub(path string) string {
	m := hubName.FindStringSubmatch(path)
	if m == nil || isFolder(m[2], "") {
		return ""
	}
	switch filepath.Ext(m[1]) {
	case ".safetensors", ".json", ".bin", ".gguf":
		return ""
	}
	return fmt.Sprintf("if this is a model on the Hugging Face Hub, download it first, and give the folder %s:\n    hf download %[1]s --local-dir %[1]s", m[1])
}
