package experiment

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// largest finite value that a result or a partial sum may have.
var largest = map[arith.Type]float64{
	arith.FP16: 65504, arith.FP16CUDA: 65504, arith.BF16: 0xff << 120, arith.FP8: 0xff << 120,
	arith.FP32: math.MaxFloat32, arith.TF32: math.MaxFloat32,
}

// TestExponents: the bound holds after scaling, no larger power of two is used than needed, and x is not scaled if only the
// weights change.
func TestExponents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Setup{Type: rapid.SampledFrom(arith.Types()).Draw(t, "type"), Change: rapid.SampledFrom([]Change{Both, Weights}).Draw(t, "change")}
		x := math.Exp2(rapid.Float64Range(-20, 140).Draw(t, "log x"))
		w := math.Exp2(rapid.Float64Range(-20, 140).Draw(t, "log w"))
		ex, ew := s.exponents(x, w)
		limit, overflows := largest[s.Type]
		switch {
		case !overflows:
			if ex != 0 || ew != 0 {
				t.Fatalf("%v is scaled by %d and %d", s.Type, ex, ew)
			}
			return
		case s.Change == Weights && ex != 0, s.Change == Both && ex != ew:
			t.Fatalf("%v: exponents %d and %d", s.Change, ex, ew)
		}
		bound := math.Ldexp(x*w, -ex-ew)
		if bound > limit/2 {
			t.Fatalf("the bound is %g, and %g is the largest value", bound, limit)
		}
		if most := limit / 16; ex+ew > 0 && bound < most {
			t.Fatalf("scaled by 2^-%d and 2^-%d to %g: that is more than it takes", ex, ew, bound)
		}
	})
}

// TestScaled: for both changes and every type, operands that would overflow are scaled down until the result is finite, and the
// file names the pattern that makes them.
func TestScaled(t *testing.T) {
	const size = 48
	for _, typ := range arith.Types() {
		for _, change := range []Change{Both, Weights} {
			sigma := 2048.0 // overflows float16 alone
			if typ == arith.FP32 || typ == arith.BF16 || typ == arith.TF32 {
				sigma = math.Exp2(62)
			}
			p := Point{"3a", 1, pattern.MustParse(fmt.Sprintf("normal(0,%g)", sigma)), pattern.MustParse(fmt.Sprintf("normal(0,%g)", sigma)), 3}
			s := Setup{Type: typ, M: size, N: size, K: size, Change: change}
			k := maker{setup: s, baseline: Point{Seed: 9}, workers: 3}
			x, w, m, err := k.make(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			_, overflows := largest[typ]
			if (m.Scaled != nil) != (overflows && typ != arith.FP8) {
				t.Errorf("%v: scaled %+v", typ, m.Scaled)
			}
			wantX, wantW := p.X, p.W
			if m.Scaled != nil {
				wantX, wantW = m.Scaled.X, m.Scaled.W
			}
			if (wantX == p.X) != (m.Scaled == nil || change == Weights) {
				t.Errorf("%v %v: x is %v", typ, change, wantX)
			}
			for _, o := range []struct {
				name string
				have gemm.Matrix
				of   pattern.Pattern
				seed uint64
			}{{"x", x, wantX, map[Change]uint64{Both: 6, Weights: 18}[change]}, {"w", w, wantW, 7}} {
				want, err := o.of.Generate(t.Context(), pattern.Spec{DType: typ.Operand(), Rows: size, Cols: size, Seed: o.seed}, 1)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(o.have.Data, want) {
					t.Errorf("%v %v: %s is not what %v makes", typ, change, o.name, o.of)
				}
			}
			y, err := gemm.Multiply(s.Problem(), x, w)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range y {
				if limit, ok := largest[typ]; ok && math.Abs(v) > limit {
					t.Fatalf("%v %v: a result of %g", typ, change, v)
				}
			}
		}
	}
}

// TestFlushed: exactly the elements that scaling set to zero are counted.
func TestFlushed(t *testing.T) {
	f, _ := weights.F16.Format()
	m := gemm.NewMatrix(weights.F16, 2, 3)
	for i, v := range []float32{0, 6e-8, -6e-8, 1, float32(math.Copysign(0, -1)), 60000} {
		f.SetElem(m.Data, i, f.FromValue(v))
	}
	o := operand{Matrix: m, pattern: pattern.MustParse("normal(0,1)")}
	small, p, lost, err := o.scale(2, 2)
	if err != nil || lost != 2 || p == o.pattern {
		t.Errorf("%d became zero, of %v: %v", lost, p, err)
	}
	for i, want := range []float32{0, 0, 0, 0.25, 0, 15000} {
		if v := f.Value(f.Elem(small.Data, i)); v != want && math.Abs(float64(v-want)) > 8 {
			t.Errorf("element %d is %v, want %v", i, v, want)
		}
	}
}

// TestFixedX: where the weights alone change, x is drawn once, and is the same for all points.
func TestFixedX(t *testing.T) {
	job := sparsities(small(arith.FP16), 3)
	k := maker{setup: job.Setup, baseline: job.Baseline, workers: 2}
	first, w, _, err := k.make(t.Context(), job.Baseline)
	if err != nil {
		t.Fatal(err)
	}
	x, sparse, _, err := k.make(t.Context(), job.Points[2])
	if err != nil {
		t.Fatal(err)
	}
	if &x.Data[0] != &first.Data[0] {
		t.Error("x was drawn again")
	}
	if bytes.Equal(w.Data, sparse.Data) || bytes.Equal(w.Data[:len(x.Data)], x.Data) {
		t.Error("operands that should differ are the same")
	}
}

func BenchmarkScale(b *testing.B) {
	const size = 4096
	for _, d := range []weights.DType{weights.F16, weights.F32} {
		p := pattern.MustParse("normal(0,1)")
		data, err := p.Generate(b.Context(), pattern.Spec{DType: d, Rows: size, Cols: size, Seed: 1}, 2)
		if err != nil {
			b.Fatal(err)
		}
		o := operand{Matrix: gemm.Matrix{DType: d, Rows: size, Cols: size, Data: data}, pattern: p}
		b.Run(fmt.Sprint(d), func(b *testing.B) {
			b.SetBytes(int64(len(o.Data)))
			for b.Loop() {
				longestRow(o.Matrix, 2)
				if _, _, _, err := o.scale(3, 2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
