package weights

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Writer streams a safetensors file: the head first, then the data in the head's order.
type Writer struct {
	f       *os.File
	want    int64 // -1 until the head is known to be complete
	written int64
	flushed int64
}

// flushEvery is how much data gathers before the kernel is asked to start writing it out, so
// that the disk works while later tensors are still being transformed.
const flushEvery = 64 << 20

// Create starts a new file with the given head ([EncodeHeader]'s, or another [File.Head] taken
// over as it is) whose data section is dataLen bytes long. A file that exists is an error.
func Create(path string, head []byte, dataLen int64) (*Writer, error) {
	if len(head) < 8 || binary.LittleEndian.Uint64(head) != uint64(len(head)-8) {
		panic("weights: Create: head is not a safetensors head")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	w := &Writer{f: f, want: int64(len(head)) + dataLen}
	if _, err := w.Write(head); err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// Write appends data.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	w.written += int64(n)
	if w.written-w.flushed >= flushEvery {
		startWriteback(w.f, w.flushed, w.written-w.flushed)
		w.flushed = w.written
	}
	return n, err
}

// Close makes the file durable (fsync). Data that is missing or too much is an error.
func (w *Writer) Close() error {
	if w.written != w.want {
		w.f.Close()
		return fmt.Errorf("%s: %d bytes written where the header promises %d", w.f.Name(), w.written, w.want)
	}
	if err := w.f.Sync(); err != nil {
		w.f.Close()
		return err
	}
	return w.f.Close()
}

// Abort gives up and removes the file.
func (w *Writer) Abort() {
	w.f.Close()
	os.Remove(w.f.Name())
}
