package cost

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestDotIsTheSum: if no bits are shifted out, a dot's fixed-point sums are the sum of products.
func TestDotIsTheSum(t *testing.T) {
	path := factsOfH200(t).Datapath
	depth, window := path.SumProducts, path.AlignedBits
	for _, dt := range []weights.DType{weights.BF16, weights.F16, weights.F8E4M3, weights.I8} {
		f, _ := dt.Format()
		d := newDecoder(f)
		rapid.Check(t, func(t *rapid.T) {
			s, u := make([]element, depth), make([]element, depth)
			want := new(big.Float)
			for k := range depth {
				a := f.FromValue(float32(rapid.IntRange(-3, 3).Draw(t, "a")))
				b := f.FromValue(float32(rapid.IntRange(-3, 3).Draw(t, "b")))
				s[k], u[k] = d.decode(a), d.decode(b)
				p := new(big.Float).Mul(big.NewFloat(float64(f.Value(a))), big.NewFloat(float64(f.Value(b))))
				want.Add(want, p)
			}
			got := &newDots(&path, 1)[0]
			got.set(s, u, 0, d.arithmetic(&path))
			scale := int(got.largest) - 2*(f.Bias+f.MantBits) + 2*f.MantBits + 2 - window
			if !f.IsFloat() {
				scale = int(got.largest) + 2*f.MantBits + 2 - window
			}
			w, _ := want.Float64()
			for name, sum := range map[string]int64{"sum": got.sum, "total": got.total} {
				if v := math.Ldexp(float64(sum), scale); v != w {
					t.Fatalf("%s: %s is %v, want %v", dt, name, v, w)
				}
			}
			signs := int64(0)
			for k := range depth { // two's complement of each product
				v := int64(got.aligned[k])
				if v >= 1<<(window+1) {
					v -= 1 << (window + 2)
				}
				if (v < 0) != (got.mant[k] > 0 && got.negative[k]) {
					t.Fatalf("product %d has the wrong sign", k)
				}
				signs += v
			}
			if signs != got.sum {
				t.Fatalf("the aligned products sum to %d, not %d", signs, got.sum)
			}
		})
	}
}

// TestSmallProductsAreShiftedOut: small products are shifted out, and so are products below the range of float32
// sums.
func TestSmallProductsAreShiftedOut(t *testing.T) {
	f, _ := weights.BF16.Format()
	d := newDecoder(f)
	path := factsOfH200(t).Datapath
	elements := func(values ...float32) []element {
		out := make([]element, path.SumProducts)
		for i, v := range values {
			out[i] = d.decode(f.FromValue(v))
		}
		return out
	}
	got := &newDots(&path, 1)[0]
	x, w := elements(1, 1), elements(1, 0x1p-40)
	got.set(x, w, 0, d.arithmetic(&path))
	if got.aligned[1] != 0 || got.mant[1] == 0 || got.aligned[0] == 0 {
		t.Errorf("aligned %v of mantissas %v", got.aligned[:2], got.mant[:2])
	}
	got.set(x, w, math.Ldexp(1, 2*f.Bias+60), d.arithmetic(&path))
	if with := got.total; with == 0 {
		t.Error("the accumulator is lost")
	}
	tiny := elements(0x1p-100, 0x1p-100)
	got.set(tiny, tiny, 0, d.arithmetic(&path))
	if got.sum != 0 || got.mant[0] == 0 {
		t.Errorf("a sum of %d beyond float32's range", got.sum)
	}
}

// TestElements: the table agrees with decoding, and elements have the right values.
func TestElements(t *testing.T) {
	for _, dt := range []weights.DType{weights.BF16, weights.F16, weights.F8E4M3, weights.F8E5M2, weights.I8, weights.F32} {
		f, _ := dt.Format()
		d := newDecoder(f)
		rapid.Check(t, func(t *rapid.T) {
			b := uint32(rapid.Uint32().Draw(t, "bits")) & (f.SignMask()<<1 - 1)
			if !f.Finite(b) {
				return
			}
			data, both := make([]byte, 8), make([]element, 2)
			f.SetElem(data, 1, b)
			d.elements(both, data)
			l := both[1]
			v := math.Ldexp(float64(l.mant), int(l.exp)-f.Bias-f.MantBits)
			if !f.IsFloat() {
				v = float64(l.mant)
			}
			if l.negative {
				v = -v
			}
			if v != float64(f.Value(b)) || l.bits != b {
				t.Fatalf("%s: %#x is %v, want %v", dt, b, v, f.Value(b))
			}
		})
	}
}
