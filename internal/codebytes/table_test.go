package codebytes

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawBlock draws a random block, with other bytes before and after it.
func drawBlock(t *rapid.T) (b Block, r *rand.Rand) {
	r = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	b = Block{Rows: rapid.IntRange(0, 5).Draw(t, "rows"), Cols: rapid.IntRange(0, 200).Draw(t, "cols")}
	b.Stride = max(1, b.Cols+rapid.IntRange(0, 70).Draw(t, "between"))
	b.Data = randomBytes(r, b.span()+rapid.IntRange(0, 3).Draw(t, "behind"))
	return b, r
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestTranslate compares Translate with a lookup of every byte. Bytes outside the block do not change.
func TestTranslate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, r := drawBlock(t)
		table := [256]byte(randomBytes(r, 256))
		before := bytes.Clone(b.Data)
		dst := randomBytes(r, len(b.Data))
		if rapid.Bool().Draw(t, "in place") {
			dst = b.Data
		}
		want := bytes.Clone(dst)
		for row := range b.Rows {
			for i := range b.Cols {
				at := row*b.Stride + i
				want[at] = table[before[at]]
			}
		}
		Translate(dst, b, &table)
		if !bytes.Equal(dst, want) {
			t.Fatalf("got  %x\nwant %x", dst, want)
		}
	})
}

// TestAdd compares the sums with numbers that are added one by one.
func TestAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, r := drawBlock(t)
		var numbers [128]uint64
		for c := range numbers {
			numbers[c] = r.Uint64() >> 16
		}
		var want uint64
		for row := range b.Rows {
			for _, c := range b.Data[row*b.Stride:][:b.Cols] {
				want += numbers[c&0x7F]
			}
		}
		var got uint64
		for p, n := range NewTable(&numbers).Add(b) {
			got += n << (8 * p)
		}
		if got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}

// TestPlain compares the definitions, which other machines run, with the code that this machine runs.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, r := drawBlock(t)
		b.Data = b.Data[:b.span()]
		table := [256]byte(randomBytes(r, 256))
		got, want := make([]byte, len(b.Data)), make([]byte, len(b.Data))
		Translate(got, b, &table)
		translatePlain(want, b, &table)
		if b.Rows > 0 && b.Cols > 0 && !bytes.Equal(got, want) {
			t.Fatalf("got  %x\nwant %x", got, want)
		}
		var numbers [128]uint64
		for c := range numbers {
			numbers[c] = r.Uint64() >> 16
		}
		sums := NewTable(&numbers)
		if got, want := sums.Add(b), sums.addPlain(b); b.Rows > 0 && b.Cols > 0 && got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}

func BenchmarkTranslate(b *testing.B) {
	src := Block{Data: make([]byte, 128*7168), Rows: 128, Cols: 128, Stride: 7168}
	dst, table := make([]byte, len(src.Data)), new([256]byte)
	b.SetBytes(128 * 128)
	for b.Loop() {
		Translate(dst, src, table)
	}
}

func BenchmarkAdd(b *testing.B) {
	src := Block{Data: make([]byte, 128*7168), Rows: 128, Cols: 128, Stride: 7168}
	table := new(Table)
	b.SetBytes(128 * 128)
	for b.Loop() {
		table.Add(src)
	}
}
