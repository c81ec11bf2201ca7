//go:build !unix

package weights

import (
	"io"
	"os"
)

// mmap reads the whole file on systems without memory mapping.
func mmap(f *os.File, size int) ([]byte, error) {
	m := make([]byte, size)
	_, err := io.ReadFull(f, m)
	return m, err
}

func unmap([]byte) error { return nil }

// advise does nothing, because nothing is mapped.
func advise([]byte, advice) {}
