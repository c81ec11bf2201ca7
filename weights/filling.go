package weights

import (
	"errors"
	"os"
)

// Filling is a new safetensors file whose tensors may be written in any order, by several goroutines.
type Filling struct {
	f    *os.File
	head int64
}

// Fill starts a new file with the given head and a data section of dataLen bytes, which are 0 until they are written. Fill
// returns an error if the file exists, or if the file system can reserve space and has too little.
func Fill(path string, head []byte, dataLen int64) (*Filling, error) {
	return fill(path, head, dataLen, reserve)
}

// FillSparse is [Fill] for a file with holes: parts that are not written take no room, if the file system supports that.
func FillSparse(path string, head []byte, dataLen int64) (*Filling, error) {
	return fill(path, head, dataLen, func(*os.File, int64) error { return nil })
}

func fill(path string, head []byte, dataLen int64, reserve func(f *os.File, size int64) error) (*Filling, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	w := &Filling{f, int64(len(head))}
	err = reserve(f, w.head+dataLen)
	if err == nil {
		err = f.Truncate(w.head + dataLen)
	}
	if err == nil {
		_, err = f.WriteAt(head, 0)
	}
	if err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// WriteAt writes p to the data section, starting at the section's byte at.
func (w *Filling) WriteAt(p []byte, at int64) (int, error) { return w.f.WriteAt(p, w.head+at) }

// Close makes the file durable (fsync).
func (w *Filling) Close() error { return errors.Join(w.f.Sync(), w.f.Close()) }

// Abort closes and removes the file.
func (w *Filling) Abort() {
	w.f.Close()
	os.Remove(w.f.Name())
}
