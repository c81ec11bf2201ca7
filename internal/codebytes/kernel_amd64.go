//go:build !purego

package codebytes

import "golang.org/x/sys/cpu"

//go:generate go run -C _gen . -out ../kernel_amd64.s -stubs ../kernel_stub_amd64.go -pkg codebytes

// vectors reports whether this machine has the kernels' instructions.
var vectors = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI

// vectorBytes is the width of a vector.
const vectorBytes = 64

// split returns the number of whole vectors in a row, and a mask with a bit for each remaining byte.
func (b Block) split() (whole int, rest uint64) {
	return b.Cols / vectorBytes, 1<<(b.Cols%vectorBytes) - 1
}

// translateVectors gives the results of translatePlain. On a machine without the instructions it does nothing and
// returns false.
func translateVectors(dst []byte, src Block, table *[256]byte) bool {
	if vectors {
		whole, rest := src.split()
		translate512(&dst[0], &src.Data[0], src.Rows, whole, rest, src.Stride, table)
	}
	return vectors
}

// addVectors gives the results of addPlain. On a machine without the instructions, ok is false.
func (t *Table) addVectors(b Block) (sums Sums, ok bool) {
	if !vectors {
		return sums, false
	}
	var lanes [Planes][8]uint64
	whole, rest := b.split()
	add512(&lanes, &b.Data[0], b.Rows, whole, rest, b.Stride, (*[Planes][128]byte)(t))
	for p := range lanes {
		for _, n := range lanes[p] {
			sums[p] += n
		}
	}
	return sums, true
}

// spreadVectors unpacks codes in whole vectors. It returns their number.
func spreadVectors(dst, src []byte) int {
	n := len(dst) / vectorBytes
	if !vectors || n == 0 {
		return 0
	}
	spread512(&dst[0], &src[0], n)
	return n * vectorBytes
}

// gatherVectors packs codes in whole vectors. It returns their number. ok is false if a code is above 15.
func gatherVectors(dst, src []byte, ahead int) (packed int, ok bool) {
	n := len(src) / vectorBytes
	if !vectors || n == 0 {
		return 0, true
	}
	above := gather512(&dst[0], &src[0], n, ahead)
	return n * vectorBytes, above == 0
}

// transposeVectors transposes columns of 16 rows in whole vectors. It returns their number.
func transposeVectors(dst, src []byte, to, from, cols int) int {
	n := cols / 16
	if !vectors || n == 0 {
		return 0
	}
	transpose512(&dst[0], &src[0], to, from, n)
	return 16 * n
}

// spreadColumnVectors is SpreadColumn for 64 words.
func spreadColumnVectors(dst, words []byte, stride int) bool {
	if vectors {
		spreadColumn512(&dst[0], &words[0], stride)
	}
	return vectors
}

// gatherColumnVectors is GatherColumn for 64 words.
func gatherColumnVectors(words, src []byte, stride int) (done, ok bool) {
	if !vectors {
		return false, false
	}
	return true, gatherColumn512(&words[0], &src[0], stride) == 0
}
