package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// headOf returns the head of a file with one U8 tensor of n bytes.
func headOf(t testing.TB, n int) []byte {
	t.Helper()
	head, _, err := EncodeHeader([]Info{{Name: "a", DType: U8, Shape: []int{n}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

func TestCreateRefusesAnExistingFile(t *testing.T) {
	path := put(t, t.TempDir(), "m.safetensors", []byte("mine"))
	_, err := Create(path, headOf(t, 1), 1)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want one that is fs.ErrExist", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "mine" {
		t.Errorf("the file is now %q, %v", got, err)
	}
}

func TestCreateRefusesWhatIsNoHead(t *testing.T) {
	for _, head := range [][]byte{nil, []byte("{}"), file("{}")[:9], append(headOf(t, 1), 0)} {
		path := filepath.Join(t.TempDir(), "m.safetensors")
		if _, err := Create(path, head, 1); err == nil {
			t.Errorf("Create took %q for a head", head)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%q: a file was written", head)
		}
	}
}

func TestCloseCountsBytes(t *testing.T) {
	head := headOf(t, 4)
	for _, n := range []int{0, 3, 5} {
		path := filepath.Join(t.TempDir(), "m.safetensors")
		w, err := Create(path, head, 4)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		wantError(t, w.Close(), fmt.Sprintf("%s: %d bytes were written, but the header announces %d", path, len(head)+n, len(head)+4))
		w.Abort()
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is still there after Abort: %v", err)
		}
	}
}

func TestAbortRemovesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	w, err := Create(path, headOf(t, 4), 4)
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte{1, 2})
	w.Abort()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// A file that is written with the head and data of another file, in pieces of any size, equals the other file byte for byte,
// for any form of its header.
func TestCopyIsIdentical(t *testing.T) {
	dir := t.TempDir()
	source := file(`{ "b":{"shape":[3],"dtype":"U8","data_offsets":[2,5]},  "__metadata__":{"k":"é<>"}, "a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}   `, 1, 2, 3, 4, 5)
	f, err := OpenFile(put(t, dir, "source.safetensors", source))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := filepath.Join(dir, "copy.safetensors")
	rapid.Check(t, func(t *rapid.T) {
		w, err := Create(path, f.Head(), int64(len(f.Data())))
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		for rest := f.Data(); len(rest) > 0; {
			n := rapid.IntRange(0, len(rest)).Draw(t, "n")
			if got, err := w.Write(rest[:n]); got != n || err != nil {
				t.Fatalf("Write: %d, %v", got, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, source) {
			t.Fatalf("the copy is %q, %v", got, err)
		}
	})
}

// Large files bypass the page cache. Pieces and an end that fill no whole block must give the same file. Missing data is an
// error.
func TestWriteLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 65 MiB")
	}
	const size, piece = 65<<20 + 4099, 1<<20 + 13
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * i >> 8)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	w, err := Create(path, headOf(t, size), size)
	if err != nil {
		t.Fatal(err)
	}
	for p := range slices.Chunk(data, piece) {
		if n, err := w.Write(p); n != len(p) || err != nil {
			t.Fatalf("Write: %d of %d bytes, %v", n, len(p), err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !bytes.Equal(f.Data(), data) {
		t.Error("the file holds other bytes than were written")
	}

	short := filepath.Join(dir, "short.safetensors")
	w, err = Create(short, headOf(t, size), size)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(data[:5<<20])
	head := len(f.Head())
	wantError(t, w.Close(), fmt.Sprintf("%s: %d bytes were written, but the header announces %d", short, head+(5<<20), head+size))
	w.Abort()
	if _, err := os.Lstat(short); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there after Abort: %v", err)
	}
}

// A disk without room is an error of Create if the file system can reserve space, and no file is left.
func TestCreateWithoutRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	w, err := Create(path, headOf(t, 1<<58), 1<<58)
	if err == nil {
		w.Abort()
		t.Skip("this file system does not reserve room")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestIndexRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), IndexName)
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.StringMatching(`[a-z0-9é ._-]{0,8}\.safetensors`)
		want := rapid.MapOfN(rapid.String(), shards, 1, 8).Draw(t, "weight map")
		if err := os.WriteFile(path, EncodeIndex(want, 123), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := (&Model{place: disk(filepath.Dir(path))}).readIndex()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestEncodeIndex(t *testing.T) {
	const want = `{
  "metadata": {
    "total_size": 7
  },
  "weight_map": {
    "a": "s1.safetensors",
    "b": "s2.safetensors"
  }
}
`
	if got := EncodeIndex(map[string]string{"b": "s2.safetensors", "a": "s1.safetensors"}, 7); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// direct creates a file that bypasses the page cache. It is n bytes larger than directFrom.
func direct(t *testing.T, n int) (w *Writer, path string, data []byte) {
	t.Helper()
	data = make([]byte, directFrom+n)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	path = filepath.Join(t.TempDir(), "m.safetensors")
	w, err := Create(path, headOf(t, len(data)), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if !w.direct {
		w.Abort()
		t.Skip("this file system writes nothing past the page cache")
	}
	return w, path, data
}

// TestDirect: a large file has the written bytes, for pieces of any size, and also if the file system refuses a direct write.
func TestDirect(t *testing.T) {
	for _, refused := range []bool{false, true} {
		w, path, data := direct(t, 12_345)
		if refused {
			if err := w.writeBlocks(data[:100], 0); err != nil { // not aligned
				t.Fatal(err)
			}
		}
		for rest, n := data, 1; len(rest) > 0; n = n*3 + 7 {
			some := rest[:min(n, len(rest))]
			if _, err := w.Write(some); err != nil {
				t.Fatal(err)
			}
			rest = rest[len(some):]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := append(headOf(t, len(data)), data...); !bytes.Equal(got, want) {
			t.Errorf("refused %v: the file differs", refused)
		}
	}
}

// TestDirectFrom: files of 64 MiB and more bypass the page cache.
func TestDirectFrom(t *testing.T) {
	w, _, _ := direct(t, 0)
	w.Abort()
	for size, want := range map[int64]bool{directFrom - 1: false, directFrom: true} {
		head := headOf(t, int(directFrom)) // as long for both
		w, err := Create(filepath.Join(t.TempDir(), "m.safetensors"), head, size-int64(len(head)))
		if err != nil {
			t.Fatal(err)
		}
		if w.direct != want {
			t.Errorf("a file of %d bytes: direct %v", size, w.direct)
		}
		w.Abort()
	}
}

// TestDirectFails: a later Write returns the error of a write in the background, and so does Close.
func TestDirectFails(t *testing.T) {
	for _, closing := range []bool{false, true} {
		w, _, data := direct(t, 0)
		w.f.Close()
		var err error
		if closing {
			if _, err := w.Write(data[:directBuffer]); err != nil {
				t.Fatalf("the first block: %v", err)
			}
			w.written = w.want
			err = w.Close()
		} else {
			_, err = w.Write(data)
		}
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("closing %v: error %v, want one that is fs.ErrClosed", closing, err)
		}
	}
}
