//go:build unix

package weights

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mmap(f *os.File, size int) ([]byte, error) {
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, FileErrorf(f.Name(), "mapping: %w", err)
	}
	noteMapping(m)
	return m, nil
}

func unmap(m []byte) error {
	if m == nil {
		return nil
	}
	dropMapping(m)
	return unix.Munmap(m)
}

// advise passes advice about the pages that hold data, which lie in a mapping. An error only means that the advice is not taken.
func advise(data []byte, a advice) {
	page := uintptr(os.Getpagesize())
	skip := int(addressOf(data) % page)
	first := (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(data)), -skip))
	_ = unix.Madvise(unsafe.Slice(first, len(data)+skip), map[advice]int{
		readsAll: unix.MADV_NORMAL, readsLittle: unix.MADV_RANDOM, readsSoon: unix.MADV_WILLNEED, readNoMore: unix.MADV_DONTNEED}[a])
}
