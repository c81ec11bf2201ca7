package program

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestSquares compares the sums of squares of FP8 codes with those of counted codes, bit by bit.
func TestSquares(t *testing.T) {
	added := false
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]weights.DType{weights.F8E4M3, weights.F8E5M2}).Draw(t, "type")
		m := &quant.Matrix{N: rapid.IntRange(1, 40).Draw(t, "rows"), K: rapid.IntRange(1, 300).Draw(t, "columns"), Global: 1,
			Book: quant.Book{Codes: "fp8", Values: make([]float32, 256), ScaleType: weights.F32}}
		f, _ := d.Format()
		for c := range m.Book.Values {
			m.Book.Values[c] = f.Value(uint32(c))
		}
		m.Block = [2]int{rapid.IntRange(1, m.N).Draw(t, "block rows"), rapid.IntRange(1, m.K).Draw(t, "block columns")}
		seed := rapid.Uint64().Draw(t, "seed")
		for range m.N * m.K {
			seed = seed*6364136223846793005 + 1442695040888963407
			m.Codes = append(m.Codes, byte(seed>>56))
		}
		columns := (m.K + m.Block[1] - 1) / m.Block[1]
		m.Scales = make([]float32, (m.N+m.Block[0]-1)/m.Block[0]*columns)
		w := &recodeWorker{recoder: newRecoder(Recoding{}, d, m, nil)}
		g := rapid.IntRange(0, columns-1).Draw(t, "group")
		last := min(m.Block[0], m.N)
		if !w.addSquares(0, last, g) {
			return
		}
		added = true
		sum, count := w.squares, w.counted
		if w.sample(0, last, g, 1, 0); sum != w.squares || count != w.counted {
			t.Fatalf("%s: %v of %v codes, counted: %v of %v", d, sum, count, w.squares, w.counted)
		}
	})
	if !added {
		t.Error("no squares were added")
	}
}

// TestLargeSquares: squares of 2^40 times the smallest code's square, or more, are not added.
func TestLargeSquares(t *testing.T) {
	for largest, added := range map[float32]bool{1<<20 - 1: true, 1 << 20: false, 1<<20 + 1: false} {
		values := make([]float32, 256)
		for c := range 128 {
			values[c] = float32(c)
		}
		values[127] = largest
		for c := range 128 {
			values[c+128] = -values[c]
		}
		if s := newSquares(values); (s.table != nil) != added {
			t.Errorf("up to %g: added %v", largest, !added)
		}
	}
}
