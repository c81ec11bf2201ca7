//go:build !amd64 || purego

package codebytes

// translateVectors does nothing where there is no kernel.
func translateVectors([]byte, Block, *[256]byte) bool { return false }

// addVectors does nothing where there is no kernel.
func (*Table) addVectors(Block) (Sums, bool) { return Sums{}, false }

// spreadVectors does nothing where there is no kernel.
func spreadVectors([]byte, []byte) int { return 0 }

// gatherVectors does nothing where there is no kernel.
func gatherVectors([]byte, []byte, int) (int, bool) { return 0, true }

// transposeVectors does nothing where there is no kernel.
func transposeVectors([]byte, []byte, int, int, int) int { return 0 }

// spreadColumnVectors does nothing where there is no kernel.
func spreadColumnVectors([]byte, []byte, int) bool { return false }

// gatherColumnVectors does nothing where there is no kernel.
func gatherColumnVectors([]byte, []byte, int) (done, ok bool) { return false, false }
