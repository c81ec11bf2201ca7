package weights

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback is a hint: its failure changes nothing, fsync decides.
func startWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
