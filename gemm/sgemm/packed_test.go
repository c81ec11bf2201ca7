package sgemm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPackedHasTheBitsOfMul, for parts of b from every kind of place on.
func TestPackedHasTheBitsOfMul(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	draw := func() float32 { return float32(r.NormFloat64()) }
	for _, shape := range []struct{ m, n, k int }{{1, 1, 1}, {28, 96, 64}, {14, 64, 700}, {3, 40, 256}, {30, 1100, 20}, {5, 33, 513}} {
		for _, trans := range []bool{false, true} {
			rows, cols := shape.k, shape.n
			if trans {
				rows, cols = cols, rows
			}
			b, _ := guarded(rows, cols, 3, draw)
			packed := Pack(b, trans)
			for range 12 {
				k0 := r.IntN(shape.k)
				k1 := k0 + 1 + r.IntN(shape.k-k0)
				j0 := r.IntN((shape.n+tileCols-1)/tileCols) * tileCols
				j1 := j0 + 1 + r.IntN(shape.n-j0)
				a, _ := guarded(shape.m, k1-k0, 2, draw)
				at := [4]int{k0, k1, j0, j1}
				if trans {
					at = [4]int{j0, j1, k0, k1}
				}
				part := b.Slice(at[0], at[1], at[2], at[3])
				want := Dense(shape.m, j1-j0, nil)
				law(want, a, part, Op{TransB: trans})
				got, memory := guarded(shape.m, j1-j0, 5, func() float32 { return float32(math.NaN()) })
				packed.Mul(got, a, k0, j0)
				for i := range want.Rows {
					for j, v := range want.Row(i) {
						if math.Float32bits(v) != math.Float32bits(got.Row(i)[j]) {
							t.Fatalf("%+v, transposed %v, from (%d, %d): element (%d, %d) is %v, want %v", shape, trans, k0, j0, i, j, got.Row(i)[j], v)
						}
					}
				}
				for i, v := range memory {
					if at := i - 5; (at < 0 || at%got.Stride >= got.Cols) && math.Float32bits(v) != guard {
						t.Fatalf("%+v: memory outside the matrix is written", shape)
					}
				}
			}
			packed.Release()
		}
	}
}

// TestPackedBeyondTheLastColumn: c may have the rest of a tile, which becomes 0.
func TestPackedBeyondTheLastColumn(t *testing.T) {
	for range 2 { // the second time with memory that was used before
		b := Dense(40, 3, nil)
		for i := range b.Data {
			b.Data[i] = float32(i + 1)
		}
		a, c := Dense(2, 3, []float32{1, 2, 3, 4, 5, 6}), Dense(2, 64, nil)
		p := Pack(b, true)
		p.Mul(c, a, 0, 0)
		p.Release()
		for i := range c.Rows {
			for j, v := range c.Row(i) {
				if (v == 0) != (j >= 40) {
					t.Errorf("element (%d, %d) is %v", i, j, v)
				}
			}
		}
		for i, memory := 0, Pack(Dense(300, 70, nil), false); i < 1; i++ {
			memory.Release()
		}
	}
}

func TestPackedRefusesOtherShapes(t *testing.T) {
	p := Pack(Dense(8, 70, nil), false)
	for name, call := range map[string]func(){
		"rows":      func() { p.Mul(Dense(2, 4, nil), Dense(3, 8, nil), 0, 0) },
		"steps":     func() { p.Mul(Dense(2, 4, nil), Dense(2, 8, nil), 1, 0) },
		"columns":   func() { p.Mul(Dense(2, 33, nil), Dense(2, 8, nil), 0, 64) },
		"alignment": func() { p.Mul(Dense(2, 4, nil), Dense(2, 8, nil), 0, 8) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s that do not fit are taken", name)
				}
			}()
			call()
		}()
	}
}
