package rounding

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// someBooks are books of codes: even and uneven, and with values too close together for a table of bounds.
func someBooks() map[string]*CodeBook {
	close, fp8 := make([]float32, 200), make([]float32, 256)
	for i := range close {
		close[i] = 1 + float32(i*i)/(1<<18)
	}
	f, _ := weights.F8E4M3.Format()
	for i := range fp8 {
		fp8[i] = f.Value(uint32(i))
	}
	return map[string]*CodeBook{
		"even":   NewCodeBook([]float32{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}, nil),
		"uneven": NewCodeBook([]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}, nil),
		"close":  NewCodeBook(close, nil),
		"fp8":    NewCodeBook(fp8, nil),
		"one":    NewCodeBook([]float32{3}, nil),
		"two":    NewCodeBook([]float32{2, -1}, nil),
	}
}

// TestNearestValues: the nearest value of a book is that of all values, and squared errors are weighted sums, for any ratio.
func TestNearestValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for name, b := range someBooks() {
		for _, zero := range []float32{0, 1.25, -2, 8} {
			least := func(x float32) (best int) {
				for i, v := range b.values {
					d, e := abs32(x-v), abs32(x-b.values[best])
					if d < e || d == e && abs32(v-zero) < abs32(b.values[best]-zero) {
						best = i
					}
				}
				return best
			}
			var targets []float32
			for i, v := range b.values {
				targets = append(targets, v, math.Nextafter32(v, 1e9), math.Nextafter32(v, -1e9))
				if i > 0 {
					m := (v + b.values[i-1]) / 2
					targets = append(targets, m, math.Nextafter32(m, 1e9), math.Nextafter32(m, -1e9))
				}
			}
			var near Nearest
			near.Take(b, zero)
			for _, x := range targets {
				want := least(x)
				if got := near.number(x); b.values[got] != b.values[want] || b.nearest(x, zero) != got {
					t.Fatalf("%s, zero %g: %g becomes %g, want %g", name, zero, x, b.values[got], b.values[want])
				}
			}
			for _, ratio := range []float32{1, 0.25, 3.5} {
				var samples []Sample
				want := 0.0
				for range 70 {
					s := Sample{float32(rng.NormFloat64() * 3), rng.Float64()}
					samples = append(samples, s)
					x := float32(s.X*ratio) + zero
					d := x - b.values[b.nearest(x, zero)]
					want += float64(d*d) * s.Weight
				}
				if got := near.Squares(samples, ratio, math.Inf(1)); math.Abs(got-want) > 1e-9*want {
					t.Errorf("%s, zero %g, ratio %g: %g, want %g", name, zero, ratio, got, want)
				}
				if got := near.Squares(samples, ratio, want/2); got != want/2 {
					t.Errorf("%s, zero %g, ratio %g: %g, want the limit %g", name, zero, ratio, got, want/2)
				}
			}
		}
	}
}

// TestBestValues: the best value of a book has the least cost of all values. Of equal costs, that of the nearest value stays.
func TestBestValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	for name, b := range someBooks() {
		for range 400 {
			x, weight := float32(rng.NormFloat64()*4), float32(math.Exp(4*rng.NormFloat64()))
			price := make([]float32, len(b.values))
			for i := range price {
				price[i] = float32(rng.IntN(4)) / 4
			}
			cost := func(i int) float32 {
				d := x - b.values[i]
				return float32(float32(d*d)*weight) + price[i]
			}
			least := cost(0)
			for i := range b.values {
				least = min(least, cost(i))
			}
			if code, v := b.Best(x, 0, weight, price); cost(b.nearest(v, 0)) != least || b.values[b.nearest(v, 0)] != v || b.codes[b.nearest(v, 0)] != code {
				t.Fatalf("%s: %g with weight %g becomes %g at a cost of %g, the least is %g", name, x, weight, v, cost(b.nearest(v, 0)), least)
			}
			near := b.nearest(x, 0)
			if code, v := b.Best(x, 0, weight, make([]float32, len(b.values))); v != b.values[near] || code != b.codes[near] {
				t.Fatalf("%s: without prices %g becomes %g, and %g is nearer", name, x, v, b.values[near])
			}
		}
	}
	if _, v := NewCodeBook([]float32{float32(math.Copysign(0, -1))}, nil).Best(1, 0, 1, nil); math.Signbit(float64(v)) {
		t.Error("a book has a negative zero")
	}
}

// TestPricesOfABook: prices get the value, the scale and the zero point, in this order, and are multiplied by lambda.
func TestPricesOfABook(t *testing.T) {
	b := someBooks()["two"].Priced(func(v, scale, zero float32) float64 { return float64(v) + 10*float64(scale) + 100*float64(zero) }, 2)
	if p := b.Prices(3, 5); len(p) != 2 || p[0] != 2*(-1+30+500) || p[1] != 2*(2+30+500) {
		t.Errorf("%v", p)
	}
	if someBooks()["two"].Prices(3, 5) != nil {
		t.Error("a book without prices has some")
	}
	const zero = 5
	c := &Codes{Books: []*CodeBook{b}, Scales: []float32{0.125}, Zero: zero, Rows: 1, Groups: 1, Group: []int32{0}, Lambda: 2, Scale: 1}
	p, err := c.picker(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if p.at(0); p.price[0] != b.Prices(0.125, zero)[0] {
		t.Errorf("prices %v", p.price)
	}
	for _, d := range []float64{0, 1e-9, 1, 1e4, 1e9} {
		weight := float32(d * 0.125 * 0.125)
		code, v := p.pick(0.3, d)
		if want, at := b.Best(0.3/0.125+zero, zero, weight, p.price); code != want || v != (at-zero)*0.125 {
			t.Errorf("weight %g: code %d of value %g, want %d", d, code, v, want)
		}
	}
}

// TestEveryValueOfAFormat: choosers without feedback give every value of the 8-bit and 16-bit formats, and the numbers halfway between two
// values, the results of the passes.
func TestEveryValueOfAFormat(t *testing.T) {
	for _, d := range []weights.DType{weights.I8, weights.F8E4M3, weights.F8E5M2, weights.BF16} {
		f := format(t, d)
		step := 1 + (1<<f.Bits)/5000
		var targets []float32
		for b := 0; b < 1<<f.Bits; b += step {
			for _, b := range []uint32{uint32(b), uint32(b) &^ f.MantMask(), uint32(b)&^f.MantMask() | 1<<max(0, f.MantBits-1)} { // powers of two, and numbers halfway between them
				if f.Finite(b) {
					targets = append(targets, f.Value(b))
				}
			}
		}
		for bits := range f.Zeroable() + 1 {
			for i, got := range choose(t, Bits{f, bits}, targets, 1) {
				if want := f.Value(f.Round(f.FromValue(targets[i]), bits, false)); math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("%s: %g with %d bits zeroed becomes %g, want %g", d, targets[i], bits, got, want)
				}
			}
		}
		for exp := -12; exp < 12; exp++ {
			exps := make([]int, len(targets))
			for i := range exps {
				exps[i] = exp
			}
			grid := f.Grid(exp)
			for i, got := range choose(t, Grid{f, exps}, targets, 1) {
				if want := f.Value(grid.Nearest(f.FromValue(targets[i]))); math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("%s: %g on the grid of 2^%d becomes %g, want %g", d, targets[i], exp, got, want)
				}
			}
		}
	}
}
