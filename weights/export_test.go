package weights

import "testing"

// HeldBytes is how many bytes of files in stores are in memory.
func HeldBytes() int64 {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	return pages.held
}

// LittleMemory leaves the data of models in stores hardly more memory than the largest tensor, until the test ends.
func LittleMemory(t testing.TB) {
	ahead, spare := aheadBytes, spareBytes
	aheadBytes, spareBytes, dropAtOnce = 2*blockBytes, 2*blockBytes, true
	t.Cleanup(func() { aheadBytes, spareBytes, dropAtOnce = ahead, spare, false })
}
