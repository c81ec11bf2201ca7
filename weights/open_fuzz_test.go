package weights

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A file may hold any bytes. Opening it returns a *FormatError, or tensors that partition the data. A file with their header,
// encoded again, has the same tensors.
func FuzzOpen(f *testing.F) {
	for _, seed := range [][]byte{
		nil,
		file(`{}`),
		file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}} `, 1, 2, 3, 4),
		file(bytesAB(`[1]`, `[2,3]`, `[2]`, `[0,2]`), 1, 2, 3),
		file(bytesAB(`[0]`, `[0,0]`, `[1]`, `[0,1]`), 1),
		file(bytesAB(`[4]`, `[0,4]`, `[5]`, `[3,8]`), make([]byte, 8)...),
		file(entry("shape", `[2147483648,2147483648,8]`), make([]byte, 8)...),
		file(entry("data_offsets", `[0,4611686018427387903]`), make([]byte, 8)...),
		file(`{"\ud800":{"dtype":"F4","shape":[2],"data_offsets":[0,1],"x":[[[{}]]]}}`, 1),
		file(entry("shape", "["+strings.Repeat("0,", 1000)+"0]")),
		{0xff, 0xe0, 0xf5, 0x05, 0, 0, 0, 0, '{'},
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := put(t, dir, "m.safetensors", data)
		before := allocated()
		m, err := Open(path)
		if grown, limit := allocated()-before, uint64(1<<20+300*len(data)); grown > limit {
			t.Errorf("a file of %d bytes had %d bytes allocated", len(data), grown)
		}
		if err != nil {
			if format, ok := errors.AsType[*FormatError](err); !ok || format.File != path || format.Msg == "" {
				t.Errorf("%T: %v", err, err)
			}
			return
		}
		defer m.Close()
		source := m.Shards[0]
		if visited := visitAll(t, m); !bytes.Equal(visited, source.Data()) || !bytes.HasSuffix(data, visited) {
			t.Errorf("the tensors hold %x, the data section is %x", visited, source.Data())
		}
		head, _, err := EncodeHeader(source.Tensors, source.Metadata)
		if err != nil {
			t.Fatalf("what opened does not encode: %v", err)
		}
		again, err := OpenFile(put(t, dir, "again.safetensors", append(head, source.Data()...)))
		if err != nil {
			t.Fatalf("what was encoded does not open: %v", err)
		}
		defer again.Close()
		if diff := cmp.Diff(source.Tensors, again.Tensors); diff != "" {
			t.Errorf("tensors, opened and encoded (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(source.Metadata, again.Metadata, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("metadata, opened and encoded (-want +got):\n%s", diff)
		}
	})
}

// visitAll returns the data of all tensors, one after the other.
func visitAll(t *testing.T, m *Model) (all []byte) {
	err := m.Each(func(x Tensor) error {
		if x.Size() != int64(len(x.Data)) || cap(x.Data) != len(x.Data) {
			t.Errorf("tensor %q: %d bytes, room for %d, want %d", x.Name, len(x.Data), cap(x.Data), x.Size())
		}
		if rows, cols := x.Matrix(); rows < 0 || cols < 0 || rows*cols != x.Len() || x.Len()*x.DType.Bits() != 8*len(x.Data) {
			t.Errorf("tensor %q: %d by %d of %s in %d bytes", x.Name, rows, cols, x.DType, len(x.Data))
		}
		all = append(all, x.Data...)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// allocated returns the number of bytes allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// After a truncation of a valid file, or a change of any byte of its head, opening returns an error or tensors that fill the
// file.
func TestEveryCutAndEveryByte(t *testing.T) {
	whole := file(`{"__metadata__":{"k":"v"},"a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}`, make([]byte, 8)...)
	path := filepath.Join(t.TempDir(), "m.safetensors")
	open := func(data []byte) error {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err != nil {
			return err
		}
		defer m.Close()
		if visited := visitAll(t, m); !bytes.HasSuffix(data, visited) || len(visited) != len(m.Shards[0].Data()) {
			t.Errorf("%q: the tensors hold %d bytes of data", data, len(visited))
		}
		return nil
	}
	for n := range whole {
		if err := open(whole[:n]); err == nil {
			t.Errorf("cut to %d of %d bytes it opens", n, len(whole))
		}
	}
	for i := range len(whole) - 8 {
		for _, b := range []byte{0, ' ', '"', ',', '0', '9', '[', ']', '{', '}', 'x', 0xff} {
			changed := bytes.Clone(whole)
			changed[i] = b
			_ = open(changed) // may be legal: another name, another value in the metadata
		}
	}
	if err := open(whole); err != nil {
		t.Error(err)
	}
}
