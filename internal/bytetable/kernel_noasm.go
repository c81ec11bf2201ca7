//go:build !amd64 || purego

package bytetable

// translateVectors does nothing where there is no kernel.
func translateVectors([]byte, Block, *[256]byte) bool { return false }

// addVectors does nothing where there is no kernel.
func (*Table) addVectors(Block) (Sums, bool) { return Sums{}, false }
