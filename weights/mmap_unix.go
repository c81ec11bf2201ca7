//go:build unix

package weights

import (
	"os"

	"golang.org/x/sys/unix"
)

func mmap(f *os.File, size int) ([]byte, error) {
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, FileErrorf(f.Name(), "mapping: %w", err)
	}
	return m, nil
}

func unmap(m []byte) error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}
