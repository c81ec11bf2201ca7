package weights

import "testing"

// HeldBytes returns the number of bytes of files in stores that are in memory.
func HeldBytes() int64 {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	return pages.held
}

// LittleMemory limits the memory for data of models in stores to little more than the largest tensor, until the test ends.
func LittleMemory(t testing.TB) {
	ahead, spare := aheadBytes, spareBytes
	aheadBytes, spareBytes, dropAtOnce = 2*blockBytes, 2*blockBytes, true
	t.Cleanup(func() { aheadBytes, spareBytes, dropAtOnce = ahead, spare, false })
}
