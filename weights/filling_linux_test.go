package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFilling: a file that is written in any order has the written bytes, and zeros elsewhere. Fill reserves disk space, and
// FillSparse does not.
func TestFilling(t *testing.T) {
	const n = 1 << 20
	for name, fill := range map[string]func(string, []byte, int64) (*Filling, error){"whole": Fill, "sparse": FillSparse} {
		path := filepath.Join(t.TempDir(), "m.safetensors")
		head := headOf(t, n)
		w, err := fill(path, head, n)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		if st.Size != int64(len(head))+n || (st.Blocks*512 >= n) != (name == "whole") {
			t.Errorf("%s: %d bytes in %d blocks", name, st.Size, st.Blocks)
		}
		for _, at := range []int64{n - 3, 0} {
			if _, err := w.WriteAt([]byte{1, 2, 3}, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := append(bytes.Clone(head), make([]byte, n)...)
		copy(want[len(head):], []byte{1, 2, 3})
		copy(want[len(want)-3:], []byte{1, 2, 3})
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes: %v", name, err)
		}
		if _, err := fill(path, head, n); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: over an existing file: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if w, err := Fill(path, headOf(t, 1<<58), 1<<58); err == nil {
		w.Abort()
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file without room is left: %v", err)
	}
}

// TestDirectFlag: setDirect sets and clears O_DIRECT, and changes no other flag of the file.
func TestDirectFlag(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	flags := func() int {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		if err != nil {
			t.Fatal(err)
		}
		return flags
	}
	before := flags()
	if err := setDirect(f, true); err != nil {
		t.Skip("this file system writes nothing past the page cache")
	}
	if now := flags(); now != before|unix.O_DIRECT {
		t.Errorf("flags %#o, and before %#o", now, before)
	}
	if err := setDirect(f, false); err != nil || flags() != before {
		t.Errorf("flags %#o, and before %#o: %v", flags(), before, err)
	}
	f.Close()
	if setDirect(f, true) == nil {
		t.Error("a closed file has flags")
	}
	var path *os.PathError
	if err := reserve(f, 1); !errors.As(err, &path) || path.Path != f.Name() || path.Op != "reserve" {
		t.Errorf("a closed file reserves room: %v", err)
	}
}

// TestErrorsNamePlaces: errors begin with the file, and with the tensor and the byte if these are known.
func TestErrorsNamePlaces(t *testing.T) {
	for want, err := range map[string]error{
		`f: bad 1`:                     FileErrorf("f", "bad %d", 1),
		`f: tensor "t": bad 1`:         TensorErrorf("f", "t", "bad %d", 1),
		`f: tensor "t": byte 0: wrong`: &FormatError{"f", "t", 0, "wrong"},
		`f: byte 7: wrong`:             &FormatError{"f", "", 7, "wrong"},
		`f: wrong`:                     &FormatError{"f", "", -1, "wrong"},
		`no model was given: open a model with weights.Open`:     (*Model)(nil).Usable(),
		`the model has no files: open a model with weights.Open`: new(Model).Usable(),
	} {
		if fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := FileErrorf("f", "%w", fs.ErrExist); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v wraps nothing", err)
	}
	m, err := Open(folder(t, twoShards(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Usable(); err != nil {
		t.Error(err)
	}
	m.Close()
	if err := m.Usable(); err == nil || !strings.Contains(err.Error(), "the model is closed") {
		t.Errorf("a closed model: %v", err)
	}
}

// TestUnchanged: the error names a file whose size, time or inode has changed since it was opened.
func TestUnchanged(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"": func(string) error { return nil },
		"was changed while lowtoggle read it": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.WriteString("x")
				f.Close()
			}
			return err
		},
		"no such file": os.Remove,
	} {
		path := put(t, t.TempDir(), "m.safetensors", shard(t, "a"))
		f, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		err = f.Unchanged()
		if name == "" && err != nil || name != "" && (err == nil || !strings.Contains(err.Error(), name)) {
			t.Errorf("%q: %v", name, err)
		}
		f.Close()
	}
	if (StampOf(nil) != Stamp{}) {
		t.Error("no file has a stamp")
	}
	f, err := Arrange("x", []Info{{Name: "a", DType: U8, Shape: []int{1}}}, nil, func(Info) []byte { return nil })
	if err != nil || f.Unchanged() != nil {
		t.Errorf("a file in memory changes: %v", err)
	}
	if _, err := Arrange("x", []Info{{Name: "a", DType: U8, Shape: []int{-1}}}, nil, func(Info) []byte { return nil }); err == nil {
		t.Error("a shape below zero is arranged")
	}
}
