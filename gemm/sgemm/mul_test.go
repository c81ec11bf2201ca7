package sgemm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"pgregory.net/rapid"
)

// law computes the definition of c, element by element.
func law(c, a, b Matrix, op Op) {
	for i := range c.Rows {
		for j := range c.Cols {
			var sum float32
			if op.Add {
				sum = c.Row(i)[j]
			}
			for k := range inner(a, op) {
				sum = fma(at(a, op.TransA, i, k), at(b, op.TransB, k, j), sum)
			}
			c.Row(i)[j] = sum
		}
	}
}

func inner(a Matrix, op Op) int {
	if op.TransA {
		return a.Rows
	}
	return a.Cols
}

func at(m Matrix, trans bool, i, j int) float32 {
	if trans {
		i, j = j, i
	}
	return m.Data[i*m.Stride+j]
}

// values are kinds of operands, each hard in its own way.
var values = []struct {
	name string
	draw func(*rand.Rand) float32
}{
	{"normal", func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }},
	{"halfway", func(r *rand.Rand) float32 { // products of 26 bits, sums that cancel
		return float32(r.IntN(1<<14)-1<<13) * float32(math.Ldexp(1, 12*r.IntN(3)))
	}},
	{"subnormal", func(r *rand.Rand) float32 { return float32(r.NormFloat64() * 0x1p-73) }},
	{"overflowing", func(r *rand.Rand) float32 { return float32(r.NormFloat64() * 0x1p62) }},
	{"any", func(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32()) }},
}

// guard is the value around a view. It is NaN, so reading it spoils the result.
const guard = 0x7FABCDEF

// guarded returns a view whose rows lie gap elements apart, with guards before, between and behind them.
func guarded(rows, cols, gap int, draw func() float32) (m Matrix, memory []float32) {
	memory = make([]float32, gap+rows*(cols+gap))
	for i := range memory {
		memory[i] = math.Float32frombits(guard)
	}
	m = Matrix{rows, cols, cols + gap, memory[gap:]}
	for i := range rows {
		for j := range m.Row(i) {
			m.Row(i)[j] = draw()
		}
	}
	return m, memory
}

// problem is the shape of a product and the contents of its operands.
type problem struct {
	m, n, k          int
	gapA, gapB, gapC int
	op               Op
	values           int
	seed             uint64
}

// operands are made the same for every call.
func (p problem) operands() (c, a, b Matrix, memory []float32) {
	rng := rand.New(rand.NewPCG(p.seed, 0))
	draw := func() float32 { return values[p.values].draw(rng) }
	shape := func(trans bool, rows, cols int) (int, int) {
		if trans {
			return cols, rows
		}
		return rows, cols
	}
	rows, cols := shape(p.op.TransA, p.m, p.k)
	a, _ = guarded(rows, cols, p.gapA, draw)
	rows, cols = shape(p.op.TransB, p.k, p.n)
	b, _ = guarded(rows, cols, p.gapB, draw)
	c, memory = guarded(p.m, p.n, p.gapC, draw)
	return c, a, b, memory
}

// check compares the kernels and the loop in Go with the definition, and looks at the guards around c.
func (p problem) check(t rapid.TB) {
	c, a, b, want := p.operands()
	law(c, a, b, p.op)
	for _, by := range methods {
		c, a, b, got := p.operands()
		if err := newProduct(c, a, b, p.op, by.tile).run(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if !sameBits(got[i], want[i]) {
				t.Fatalf("%s, %s values, %+v: element %d of c's memory is %x, want %x",
					by.name, values[p.values].name, p, i, got[i], want[i])
			}
			if math.Float32bits(want[i]) == guard && math.Float32bits(got[i]) != guard {
				t.Fatalf("%s, %+v: wrote beside c, at element %d of its memory", by.name, p, i)
			}
		}
	}
}

func TestLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Of all three, one may be large: beyond several tiles, a block's width, a block's depth.
		limits := rapid.SampledFrom([][3]int{
			{50, 100, 40}, {300, 40, 10}, {20, width + 100, 8}, {20, 40, 2*depth + 50},
		}).Draw(t, "limits")
		op := Op{
			TransA:  rapid.Bool().Draw(t, "transA"),
			TransB:  rapid.Bool().Draw(t, "transB"),
			Add:     rapid.Bool().Draw(t, "add"),
			Workers: rapid.IntRange(0, 4).Draw(t, "workers"),
		}
		gap := rapid.IntRange(0, 20)
		problem{
			m:    rapid.IntRange(0, limits[0]).Draw(t, "m"),
			n:    rapid.IntRange(0, limits[1]).Draw(t, "n"),
			k:    rapid.IntRange(0, limits[2]).Draw(t, "k"),
			gapA: gap.Draw(t, "gap of a"), gapB: gap.Draw(t, "gap of b"), gapC: gap.Draw(t, "gap of c"),
			op:     op,
			values: rapid.IntRange(0, len(values)-1).Draw(t, "values"),
			seed:   rapid.Uint64().Draw(t, "seed"),
		}.check(t)
	})
}

// Sizes next to the sizes of tiles and blocks find loops that end one step too early or too late.
func TestLawAtEdges(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tests of workers share as much")
	}
	around := func(n int) []int { return []int{n - 1, n, n + 1} }
	for _, m := range around(tileRows) {
		for _, n := range around(tileCols) {
			for _, k := range append(around(depth), 1) {
				for ops := range 8 {
					op := Op{TransA: ops&1 > 0, TransB: ops&2 > 0, Add: ops&4 > 0, Workers: 2}
					problem{m: m, n: n, k: k, gapC: 1, op: op, values: ops % len(values)}.check(t)
				}
			}
		}
	}
	for _, n := range around(width) {
		problem{m: tileRows + 1, n: n, k: depth + 1, op: Op{Workers: 3}}.check(t)
	}
}

func FuzzMul(f *testing.F) {
	f.Add(uint8(15), uint16(33), uint16(257), uint8(0), uint8(1), uint8(0), uint64(1))
	f.Add(uint8(28), uint16(1025), uint16(3), uint8(7), uint8(2), uint8(21), uint64(2))
	f.Add(uint8(1), uint16(1), uint16(600), uint8(3), uint8(4), uint8(42), uint64(3))
	f.Fuzz(func(t *testing.T, m uint8, n, k uint16, ops, kind, gaps uint8, seed uint64) {
		problem{
			m: int(m % 64), n: int(n % (width + 64)), k: int(k % (2*depth + 64)),
			gapA: int(gaps % 3), gapB: int(gaps / 3 % 3), gapC: int(gaps / 9 % 3),
			op:     Op{TransA: ops&1 > 0, TransB: ops&2 > 0, Add: ops&4 > 0, Workers: 1 + int(ops>>3&3)},
			values: int(kind) % len(values),
			seed:   seed,
		}.check(t)
	})
}

// The product agrees with one in float64, as closely as sums of k roundings can.
func TestAgreesWithFloat64(t *testing.T) {
	p := problem{m: 70, n: 130, k: 700, gapA: 3, gapB: 5, op: Op{TransA: true, TransB: true, Add: true}, seed: 4}
	c, a, b, _ := p.operands()
	wide := func(m Matrix, f func(float64) float64) blas64.General {
		g := blas64.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Cols}
		for i := range m.Rows {
			for _, v := range m.Row(i) {
				g.Data = append(g.Data, f(float64(v)))
			}
		}
		return g
	}
	same := func(v float64) float64 { return v }
	want, size := wide(c, same), wide(c, math.Abs)
	blas64.Gemm(blas.Trans, blas.Trans, 1, wide(a, same), wide(b, same), 1, want)
	blas64.Gemm(blas.Trans, blas.Trans, 1, wide(a, math.Abs), wide(b, math.Abs), 1, size)
	if err := Mul(context.Background(), c, a, b, p.op); err != nil {
		t.Fatal(err)
	}
	for i := range want.Rows {
		for j, got := range c.Row(i) {
			at := i*want.Stride + j
			if bound := float64(p.k) * 0x1p-24 * size.Data[at]; math.Abs(float64(got)-want.Data[at]) > bound {
				t.Fatalf("element (%d, %d) is %g, in float64 %g, which may differ by %g", i, j, got, want.Data[at], bound)
			}
		}
	}
}

// After ctx ends no worker begins another job.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	tiles := 0
	stop := func([]float32, int, int, int, *rowPanel, *colPanel, int, bool) {
		tiles++
		cancel()
	}
	const panels = 3
	c, a, b := Dense(100*tileRows, panels*tileCols, nil), Dense(100*tileRows, 2*depth, nil), Dense(2*depth, panels*tileCols, nil)
	err := newProduct(c, a, b, Op{Workers: 1}, stop).run(ctx)
	if !errors.Is(err, context.Canceled) || tiles != panels {
		t.Errorf("%d tiles and error %v after the end, want %d and %v", tiles, err, panels, context.Canceled)
	}
	for _, k := range []int{0, 8} {
		if err := Mul(ctx, c, Dense(c.Rows, k, nil), Dense(k, c.Cols, nil), Op{}); !errors.Is(err, context.Canceled) {
			t.Errorf("k = %d: error %v, want %v", k, err, context.Canceled)
		}
	}
}

func TestMisfitsPanic(t *testing.T) {
	m := func(rows, cols int) Matrix { return Dense(rows, cols, nil) }
	for _, p := range []struct {
		c, a, b Matrix
		op      Op
	}{
		{m(2, 4), m(2, 3), m(4, 4), Op{}},
		{m(3, 4), m(2, 3), m(3, 4), Op{}},
		{m(2, 5), m(2, 3), m(3, 4), Op{}},
		{m(2, 4), m(2, 3), m(3, 4), Op{TransA: true}},
		{m(2, 4), m(2, 3), m(3, 4), Op{TransB: true}},
		{Matrix{2, 4, 3, make([]float32, 8)}, m(2, 3), m(3, 4), Op{}},
		{m(2, 4), Matrix{2, 3, 4, make([]float32, 6)}, m(3, 4), Op{}},
		{m(2, 4), m(2, 3), Matrix{-3, 4, 4, nil}, Op{}},
	} {
		t.Run(fmt.Sprintf("%dx%d %dx%d %+v", p.a.Rows, p.a.Cols, p.b.Rows, p.b.Cols, p.op), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = Mul(context.Background(), p.c, p.a, p.b, p.op)
		})
	}
}
