//go:build unix

package weights

import "golang.org/x/sys/unix"

// reserveAddresses returns memory that cannot be read before commit. Reading earlier is a fault.
func reserveAddresses(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

// commit makes whole pages of reserved memory writable.
func commit(b []byte) error { return unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE) }

// readOnly protects committed memory against writing.
func readOnly(b []byte) error { return unix.Mprotect(b, unix.PROT_READ) }

// decommit returns memory to the system and keeps the addresses reserved.
func decommit(b []byte) error {
	if err := unix.Madvise(b, unix.MADV_DONTNEED); err != nil {
		return err
	}
	return unix.Mprotect(b, unix.PROT_NONE)
}
