package codebytes

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestTranspose compares every word. Other bytes do not change.
func TestTranspose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rows, cols := rapid.IntRange(1, 70).Draw(t, "rows"), rapid.IntRange(1, 70).Draw(t, "cols")
		from, to := 4*cols+rapid.IntRange(0, 9).Draw(t, "from"), 4*rows+rapid.IntRange(0, 9).Draw(t, "to")
		src, dst := randomBytes(r, (rows-1)*from+4*cols), randomBytes(r, (cols-1)*to+4*rows)
		want := bytes.Clone(dst)
		for i := range rows {
			for c := range cols {
				copy(want[c*to+4*i:][:4], src[i*from+4*c:])
			}
		}
		if Transpose(dst, src, to, from, rows, cols); !bytes.Equal(dst, want) {
			t.Fatalf("got  %x\nwant %x", dst, want)
		}
	})
}

// TestColumn compares SpreadColumn with every half of a byte, and GatherColumn with its inverse.
func TestColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 200).Draw(t, "words")
		stride := n + rapid.IntRange(0, 9).Draw(t, "between")
		words, codes := randomBytes(r, 4*n), randomBytes(r, 7*stride+n)
		want := bytes.Clone(codes)
		for i := range n {
			for half, row := range [8]int{0, 2, 4, 6, 1, 3, 5, 7} {
				want[row*stride+i] = words[4*i+half/2] >> (4 * (half % 2)) & 15
			}
		}
		if SpreadColumn(codes, words, stride); !bytes.Equal(codes, want) {
			t.Fatalf("got  %x\nwant %x", codes, want)
		}
		again := make([]byte, len(words))
		if !GatherColumn(again, codes, stride) || !bytes.Equal(again, words) {
			t.Fatalf("got  %x\nwant %x", again, words)
		}
		codes[rapid.IntRange(0, 7).Draw(t, "row")*stride+rapid.IntRange(0, n-1).Draw(t, "word")] |= 16
		if GatherColumn(again, codes, stride) {
			t.Fatal("a code above 15 is not reported")
		}
	})
}
