package weights

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// file returns a safetensors file's bytes: length, the given header, data.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// put writes a file into dir, with the folders it lies in, and returns its path.
func put(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// shard returns a file with one byte in each of the named tensors: 1, 2, ...
func shard(t testing.TB, names ...string) []byte {
	t.Helper()
	var infos []Info
	var data []byte
	for i, name := range names {
		infos = append(infos, Info{Name: name, DType: U8, Shape: []int{1}})
		data = append(data, byte(i+1))
	}
	head, _, err := EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(head, data...)
}

// wantError fails the test unless the error's text is exactly want.
func wantError(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if err.Error() != want {
		t.Errorf("error\n%s\nwant\n%s", err, want)
	}
}
