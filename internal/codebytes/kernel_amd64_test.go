//go:build !purego

package codebytes

import "testing"

// TestWholeVectors: on a machine with the instructions, kernels take all whole vectors and nothing beyond them.
func TestWholeVectors(t *testing.T) {
	if !vectors {
		t.Skip("this machine lacks the instructions")
	}
	for n, want := range map[int]int{0: 0, 56: 0, 63: 0, 64: 64, 72: 64, 127: 64, 128: 128, 200: 192} {
		codes, packed := make([]byte, n), make([]byte, n/2)
		if got := spreadVectors(codes, packed); got != want {
			t.Errorf("%d codes: %d are spread", n, got)
		}
		if got, ok := gatherVectors(packed, codes, 0); got != want || !ok {
			t.Errorf("%d codes: %d are packed, %v", n, got, ok)
		}
		if want > 0 {
			codes[want-1] = 16
			if _, ok := gatherVectors(packed, codes, 0); ok {
				t.Errorf("%d codes: the last one of a vector is too large, and is not seen", n)
			}
		}
		if whole, rest := (Block{Cols: n}).split(); whole != n/64 || rest != 1<<(n%64)-1 {
			t.Errorf("%d columns: %d vectors and %#x", n, whole, rest)
		}
	}
	for cols, want := range map[int]int{1: 0, 15: 0, 16: 16, 31: 16, 33: 32} {
		if got := transposeVectors(make([]byte, 64*cols), make([]byte, 16*4*cols), 64, 4*cols, cols); got != want {
			t.Errorf("%d columns: %d are transposed", cols, got)
		}
	}
}
