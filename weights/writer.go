package weights

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

// Writer streams a safetensors file: the head first, then the data in the head's order.
//
// Large files bypass the page cache where the file system allows it: writing is faster, and a large model does not evict other
// data from the cache.
type Writer struct {
	f       *os.File
	want    int64
	written int64
	direct  bool // another goroutine writes whole blocks with direct writes
	blocks       // used only while direct
}

const (
	// directFrom is the size in bytes from which direct writes are used.
	directFrom = 64 << 20
	// directBuffer is the number of bytes in one direct write.
	directBuffer = 4 << 20
	// directBuffers is the number of buffers: one is filled while the others are written.
	directBuffers = 3
	// directAlign is the alignment of direct writes, in memory and in the file.
	directAlign = 4096
)

// blocks gathers data into whole blocks for direct writes (O_DIRECT), which bypass the page cache.
type blocks struct {
	buf    []byte      // gathered data, not written yet
	at     int64       // its place in the file, a multiple of directAlign
	free   chan []byte // empty buffers
	failed chan error  // the first error of a write
}

// Create starts a new file with the given head and a data section of dataLen bytes. head comes from [EncodeHeader] or another
// file's [File.Head]. Create returns an error if the file exists, if head is not the head of a safetensors file, or if the
// file system can reserve space and has too little.
func Create(path string, head []byte, dataLen int64) (*Writer, error) {
	if len(head) < 8 || binary.LittleEndian.Uint64(head) != uint64(len(head)-8) {
		return nil, FileErrorf(path, "cannot be written: its header is not a safetensors header")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	w := &Writer{f: f, want: int64(len(head)) + dataLen}
	err = reserve(f, w.want)
	if err == nil && w.want >= directFrom && setDirect(f, true) == nil {
		w.direct = true
		w.blocks = blocks{buf: alignedBuffer(directBuffer), free: make(chan []byte, directBuffers), failed: make(chan error, 1)}
		for range directBuffers - 1 {
			w.free <- nil // allocated on first use
		}
	}
	if err == nil {
		_, err = w.Write(head)
	}
	if err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// alignedBuffer returns an empty buffer whose memory begins at a multiple of directAlign.
func alignedBuffer(size int) []byte {
	b := make([]byte, size+directAlign)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (directAlign - 1)
	return b[skip : skip : skip+size]
}

// Write appends data.
func (w *Writer) Write(p []byte) (int, error) {
	total := len(p)
	for w.direct && len(p) > 0 {
		n := min(len(p), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		p = p[n:]
		w.written += int64(n)
		if len(w.buf) == cap(w.buf) {
			if err := w.flush(); err != nil {
				return total - len(p), err
			}
		}
	}
	if len(p) == 0 {
		return total, nil
	}
	n, err := w.f.Write(p)
	w.written += int64(n)
	return total - len(p) + n, err
}

// flush starts writing the full buffer and takes an empty buffer. It returns the error of an earlier write.
func (w *Writer) flush() error {
	next := <-w.free
	select {
	case err := <-w.failed:
		w.failed <- err
		w.free <- next
		return err
	default:
	}
	if next == nil {
		next = alignedBuffer(directBuffer)
	}
	full, at := w.buf, w.at
	w.buf, w.at = next, at+int64(len(full))
	go func() {
		if err := w.writeBlocks(full, at); err != nil {
			select {
			case w.failed <- err:
			default:
			}
		}
		w.free <- full[:0]
	}()
	return nil
}

// writeBlocks writes whole blocks. If the file system refuses direct writes, it continues with ordinary ones.
func (w *Writer) writeBlocks(b []byte, at int64) error {
	n, err := w.f.WriteAt(b, at)
	if n > 0 || !errors.Is(err, syscall.EINVAL) {
		return err
	}
	if err := setDirect(w.f, false); err != nil {
		return err
	}
	_, err = w.f.WriteAt(b, at)
	return err
}

// finish waits for all writes, then writes the rest of the gathered data.
func (w *Writer) finish() error {
	for range directBuffers - 1 {
		<-w.free
	}
	select {
	case err := <-w.failed:
		return err
	default:
	}
	whole := len(w.buf) &^ (directAlign - 1)
	if err := w.writeBlocks(w.buf[:whole], w.at); err != nil {
		return err
	}
	if err := setDirect(w.f, false); err != nil {
		return err
	}
	_, err := w.f.WriteAt(w.buf[whole:], w.at+int64(whole))
	return err
}

// Close makes the file durable (fsync). It returns an error if the data written is not as long as dataLen of [Create].
func (w *Writer) Close() error {
	if w.written != w.want {
		w.f.Close()
		return FileErrorf(w.f.Name(), "%d bytes were written, but the header announces %d", w.written, w.want)
	}
	var err error
	if w.direct {
		err = w.finish()
	}
	if err == nil {
		err = w.f.Sync()
	}
	if err != nil {
		w.f.Close()
		return err
	}
	return w.f.Close()
}

// Stat returns the file's size and times. It works until Close or Abort.
func (w *Writer) Stat() (fs.FileInfo, error) { return w.f.Stat() }

// Abort closes and removes the file.
func (w *Writer) Abort() {
	w.f.Close()
	os.Remove(w.f.Name())
}
