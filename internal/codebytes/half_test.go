package codebytes

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestHalves compares Spread with every half of a byte, and Gather with its inverse. Bytes after them do not change.
func TestHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := 8 * rapid.IntRange(0, 50).Draw(t, "words")
		packed := randomBytes(r, n/2+5)
		codes, want := make([]byte, n), make([]byte, n)
		for i := range want {
			want[i] = packed[i/2] >> (4 * (i % 2)) & 15
		}
		if Spread(codes, packed); !bytes.Equal(codes, want) {
			t.Fatalf("got  %x\nwant %x", codes, want)
		}
		again := bytes.Clone(packed)
		clear(again[:n/2])
		if !Gather(again, codes, 8*n) || !bytes.Equal(again, packed) {
			t.Fatalf("got  %x\nwant %x", again, packed)
		}
		if n > 0 {
			if codes[rapid.IntRange(0, n-1).Draw(t, "code")] |= 16; Gather(again, codes, 8*n) {
				t.Fatal("a code above 15 is not reported")
			}
		}
	})
}
