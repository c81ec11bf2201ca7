package pairhash

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestWrite: both digests are those of crypto/sha256, whatever pieces the streams come in.
func TestWrite(t *testing.T) {
	if !kernel {
		t.Log("this build or processor has no kernel")
	}
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := rapid.Custom(func(t *rapid.T) []byte {
			b := make([]byte, rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(0, 5000), rapid.IntRange(0, 1<<17)).Draw(t, "length"))
			r := rand.NewChaCha8([32]byte{byte(len(b))})
			r.Read(b)
			return b
		})
		a, b := sha256.New(), sha256.New()
		var all, other []byte
		for range rapid.IntRange(1, 6).Draw(t, "pieces") {
			p, q := bytesOf.Draw(t, "p"), bytesOf.Draw(t, "q")
			if rapid.Bool().Draw(t, "equally long") {
				q = bytes.Repeat([]byte{byte(len(p))}, len(p))
			}
			Write(a, b, p, q)
			all, other = append(all, p...), append(other, q...)
			if rapid.Bool().Draw(t, "one alone") {
				a.Write(q)
				all = append(all, q...)
			}
		}
		if want := sha256.Sum256(all); !bytes.Equal(a.Sum(nil), want[:]) {
			t.Errorf("first stream of %d bytes: %x, want %x", len(all), a.Sum(nil), want)
		}
		if want := sha256.Sum256(other); !bytes.Equal(b.Sum(nil), want[:]) {
			t.Errorf("second stream of %d bytes: %x, want %x", len(other), b.Sum(nil), want)
		}
	})
}

// TestOtherHashes: other hashes are written one after the other.
func TestOtherHashes(t *testing.T) {
	p, q := bytes.Repeat([]byte("ab"), 500), bytes.Repeat([]byte("c"), 1000)
	for _, make := range []func() hash.Hash{sha256.New224, sha512.New} {
		a, b := make(), sha256.New()
		Write(a, b, p, q)
		want := make()
		want.Write(p)
		if sum := sha256.Sum256(q); !bytes.Equal(a.Sum(nil), want.Sum(nil)) || !bytes.Equal(b.Sum(nil), sum[:]) {
			t.Errorf("a hash of %d bytes differs", want.Size())
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	p, q := make([]byte, 1<<20), make([]byte, 1<<20)
	b.Run("together", func(b *testing.B) {
		b.SetBytes(2 << 20)
		x, y := sha256.New(), sha256.New()
		for b.Loop() {
			Write(x, y, p, q)
		}
	})
	b.Run("apart", func(b *testing.B) {
		b.SetBytes(2 << 20)
		x, y := sha256.New(), sha256.New()
		for b.Loop() {
			x.Write(p)
			y.Write(q)
		}
	})
}
