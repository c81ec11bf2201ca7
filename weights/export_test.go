package weights

// HeldBytes is how many bytes of files in stores are in memory.
func HeldBytes() int64 {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	return pages.held
}
