//go:build !amd64 || purego

package codebytes

// translateVectors does nothing where there is no kernel.
func translateVectors([]byte, Block, *[256]byte) bool { return false }

// addVectors does nothing where there is no kernel.
func (*Table) addVectors(Block) (Sums, bool) { return Sums{}, false }

// spreadVectors does nothing where there is no kernel.
func spreadVectors([]byte, []byte) int { return 0 }

// gatherVectors does nothing where there is no kernel.
func gatherVectors([]byte, []byte, int) int { return 0 }
