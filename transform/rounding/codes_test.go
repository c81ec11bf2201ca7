package rounding

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// drawBook draws a code book: integers, FP4 or FP8, and some of their codes.
func drawBook(t *rapid.T) (b *CodeBook, values []float32, allowed func(byte) bool) {
	switch rapid.SampledFrom([]string{"int", "fp4", "fp8"}).Draw(t, "codes") {
	case "int":
		for c := range 16 {
			values = append(values, float32(c))
		}
	case "fp4":
		values = []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}
		for _, v := range values[:8:8] {
			values = append(values, -v)
		}
	default:
		f := format(t, weights.F8E4M3)
		for c := range 256 {
			values = append(values, f.Value(uint32(c)))
		}
	}
	unit := byte(rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "unit"))
	allowed = func(c byte) bool { return c%unit == 0 }
	return NewCodeBook(values, allowed), values, allowed
}

// TestBestCode: of all allowed codes, the best code has the least cost, and its value is finite.
func TestBestCode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, values, allowed := drawBook(t)
		x := float32(rapid.Float64Range(-500, 500).Draw(t, "x"))
		weight := float32(rapid.Float64Range(0, 4).Draw(t, "weight"))
		var price []float32
		priceOf := func(v float32) float64 { return math.Mod(math.Abs(float64(v))*7.3, 5) }
		if rapid.Bool().Draw(t, "priced") {
			b = b.Priced(func(v, _, _ float32) float64 { return priceOf(v) }, 1)
			price = b.Prices(1, 0)
		} else {
			weight = 1
		}
		code, v := b.Best(x, 0, weight, price)
		if !allowed(code) || values[code] != v {
			t.Fatalf("code %d of value %g; allowed: %v", code, v, allowed(code))
		}
		cost := func(v float32) float64 {
			d := x - v
			c := float64(float32(float32(d*d) * weight))
			if price != nil {
				c += float64(float32(priceOf(v)))
			}
			return c
		}
		for c, v := range values {
			if v-v == 0 && allowed(byte(c)) && cost(v) < cost(values[code])*(1-1e-6)-1e-6 {
				t.Fatalf("for %g, code %d of value %g costs %g, and %d of %g costs %g", x, code, values[code], cost(values[code]), c, v, cost(v))
			}
		}
	})
}

// TestNearestCodeTie: halfway between two values, the value nearer to the zero point is chosen.
func TestNearestCodeTie(t *testing.T) {
	var values []float32
	for c := range 16 {
		values = append(values, float32(c))
	}
	b := NewCodeBook(values, nil)
	for _, c := range []struct {
		x    float32
		zero float32
		want byte
	}{{9.5, 8, 9}, {6.5, 8, 7}, {-3, 8, 0}, {40, 8, 15}, {7.5, 8, 8}} {
		if got, _ := b.Best(c.x, c.zero, 1, nil); got != c.want {
			t.Errorf("%g: code %d, want %d", c.x, got, c.want)
		}
	}
}

// TestRoundCodes: with feedback, every value is the value of its code, for any number of workers, and feedback lowers
// the error of the outputs.
func TestRoundCodes(t *testing.T) {
	const n, k, group = 300, 64, 16
	var values []float32
	for c := range 16 {
		values = append(values, float32(c))
	}
	w, h := normal(3, n, k), secondMoment(5, k, 400)
	c := &Codes{Books: []*CodeBook{NewCodeBook(values, nil)}, Zero: 8, Rows: 1, Groups: k / group}
	for i := range n * k / group {
		c.Scales = append(c.Scales, 0.25+float32(i%5)/16)
	}
	for i := range k {
		c.Group = append(c.Group, int32(i/group))
	}
	f, err := NewFactor(context.Background(), h, FactorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := Round(context.Background(), w, f, c, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Round(context.Background(), w, f, c, Options{Workers: 3})
	if err != nil || !slices.Equal(q.Data, other.Data) {
		t.Fatalf("values depend on the number of workers; %v", err)
	}
	for i := range n {
		for j := range k {
			code, s := c.Code(i, j, q.Row(i)[j]), c.Scales[i*k/group+j/group]
			if v := (values[code] - 8) * s; v != q.Row(i)[j] {
				t.Fatalf("element [%d, %d] is %g, and the value of its code is %g", i, j, q.Row(i)[j], v)
			}
		}
	}
	nearest, err := Round(context.Background(), w, Flat(k), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	with, err := Power(context.Background(), w, q, h, 1)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Power(context.Background(), w, nearest, h, 1)
	if err != nil || with >= without {
		t.Errorf("the error is %g with feedback, and %g without; %v", with, without, err)
	}
}

// TestCodesErrors: scales, zero points and books that do not fit a layer are errors.
func TestCodesErrors(t *testing.T) {
	b := NewCodeBook([]float32{0, 1}, nil)
	for name, c := range map[string]*Codes{
		"scales":  {Books: []*CodeBook{b}, Scales: []float32{1}, Rows: 1, Groups: 1, Group: []int32{0, 0}},
		"columns": {Books: []*CodeBook{b}, Scales: []float32{1, 1}, Rows: 1, Groups: 1, Group: []int32{0}},
		"zeros":   {Books: []*CodeBook{b}, Scales: []float32{1, 1}, Zeros: []uint8{1}, Rows: 1, Groups: 1, Group: []int32{0, 0}},
		"values":  {Books: []*CodeBook{NewCodeBook(nil, nil)}, Scales: []float32{1, 1}, Rows: 1, Groups: 1, Group: []int32{0, 0}},
		"lambda":  {Books: []*CodeBook{b}, Scales: []float32{1, 1}, Rows: 1, Groups: 1, Group: []int32{0, 0}, Lambda: -1},
	} {
		if _, err := c.Begin(2, 2); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
