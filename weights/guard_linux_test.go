package weights

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// If a mapped file is truncated, reading the lost part gives an error, and the process continues.
func TestGuardTruncatedFile(t *testing.T) {
	const size = 1 << 20
	path := put(t, t.TempDir(), "m.safetensors", append(headOf(t, size), make([]byte, size)...))
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	a, _ := m.Tensor("a")
	var sum byte
	read := func() error {
		for _, b := range a.Data {
			sum += b
		}
		return nil
	}
	if err := Guard(path, read); err != nil {
		t.Fatalf("the whole file: %v", err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	want := path + ": reading failed: the file was cut short or its disk failed: copy or download the file again"
	wantError(t, Guard(path, read), want)
	if err := Guard(path, func() error { sum += a.Data[0]; return nil }); err != nil {
		t.Errorf("the part that is left: %v", err)
	}
}

// The header is also read under the guard: a file that shrinks and grows while it is opened never ends the process.
func TestOpenShrinkingFile(t *testing.T) {
	infos := make([]Info, 5000)
	for i := range infos {
		infos[i] = Info{Name: strconv.Itoa(i), DType: U8, Shape: []int{0}}
	}
	head, _, err := EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := put(t, t.TempDir(), "m.safetensors", head)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Truncate(path, 4096) // opening must survive this
				_ = os.WriteFile(path, head, 0o644)
			}
		}
	}()
	faults := 0
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		f, err := OpenFile(path)
		if err == nil {
			f.Close()
		} else if strings.Contains(err.Error(), "cut short or its disk failed") {
			faults++
		}
	}
	close(stop)
	<-stopped
	t.Logf("%d faults survived", faults)
}

func TestGuardPassesOn(t *testing.T) {
	own := errors.New("own")
	if err := Guard("x", func() error { return own }); err != own {
		t.Errorf("got %v, want the function's own error", err)
	}
	defer func() {
		if r := recover(); r != "not a fault" {
			t.Errorf("recovered %v, want the function's own panic", r)
		}
	}()
	Guard("x", func() error { panic("not a fault") })
}

// On a full disk, writing data returns an error, or at the latest closing the file.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	w := &Writer{f: full, want: 4}
	if _, err := w.Write(make([]byte, 4)); err == nil {
		t.Error("writing to a full disk succeeded")
	}
	if err := w.Close(); err == nil {
		t.Error("closing a file whose data is missing succeeded")
	}
	if _, err := Create(filepath.Join(t.TempDir(), "absent", "m.safetensors"), headOf(t, 1), 1); err == nil {
		t.Error("created a file in a folder that is not there")
	}
}
