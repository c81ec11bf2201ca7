package digest_test

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/digest"
)

// TestSums holds the sums of two messages, written in pieces of any length, against crypto/sha256. Sums may be asked for on the
// way.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		p := digest.New()
		var messages [2][]byte
		for range rapid.IntRange(0, 6).Draw(t, "pieces") {
			var pieces [2][]byte
			for i := range pieces {
				most := rapid.SampledFrom([]int{0, 3, 70, 1000}).Draw(t, "most")
				pieces[i] = make([]byte, rapid.IntRange(0, most).Draw(t, "bytes"))
				for k := range pieces[i] {
					pieces[i][k] = byte(random.Uint32())
				}
				messages[i] = append(messages[i], pieces[i]...)
			}
			p.Write(pieces[0], pieces[1])
			a, b := p.Sums()
			if want := sha256.Sum256(messages[0]); a != want {
				t.Fatalf("%d bytes: %x, want %x", len(messages[0]), a, want)
			}
			if want := sha256.Sum256(messages[1]); b != want {
				t.Fatalf("%d bytes beside: %x, want %x", len(messages[1]), b, want)
			}
		}
	})
}

// BenchmarkWrite hashes two messages; bytes are those of both.
func BenchmarkWrite(b *testing.B) {
	x, y := make([]byte, 1<<20), make([]byte, 1<<20)
	b.Run("pair", func(b *testing.B) {
		p := digest.New()
		b.SetBytes(2 << 20)
		for b.Loop() {
			p.Write(x, y)
		}
	})
	b.Run("one by one", func(b *testing.B) {
		one, other := sha256.New(), sha256.New()
		b.SetBytes(2 << 20)
		for b.Loop() {
			one.Write(x)
			other.Write(y)
		}
	})
}
