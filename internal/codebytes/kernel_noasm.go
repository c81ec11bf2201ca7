//go:build !amd64 || purego

package codebytes

// translateVectors does nothing in builds without the kernel.
func translateVectors([]byte, Block, *[256]byte) bool { return false }

// addVectors does nothing in builds without the kernel.
func (*Table) addVectors(Block) (Sums, bool) { return Sums{}, false }

// spreadVectors does nothing in builds without the kernel.
func spreadVectors([]byte, []byte) int { return 0 }

// gatherVectors does nothing in builds without the kernel.
func gatherVectors([]byte, []byte, int) (int, bool) { return 0, true }

// transposeVectors does nothing in builds without the kernel.
func transposeVectors([]byte, []byte, int, int, int) int { return 0 }

// spreadColumnVectors does nothing in builds without the kernel.
func spreadColumnVectors([]byte, []byte, int) bool { return false }

// gatherColumnVectors does nothing in builds without the kernel.
func gatherColumnVectors([]byte, []byte, int) (done, ok bool) { return false, false }
