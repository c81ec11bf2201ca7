package pass_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestScaleOfEachElement: sums, numbers and limits have the bits of a computation element by element. Models have
// zeros, subnormal values and values that are not finite, with and without planned powers of two.
func TestScaleOfEachElement(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"llama-tiny", "gpt2-tiny", "qwen2-tiny"} {
		for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3} {
			dir := folder(t, config(t, name, ""), synth.Options{DType: d})
			edit(t, dir, func(info weights.Info, data []byte) {
				f, _ := info.DType.Format()
				_, cols := info.Matrix()
				for i := range info.Len() {
					if i/cols%3 == 1 && rng.IntN(9) == 0 || rng.IntN(300) == 0 {
						f.SetElem(data, i, rng.Uint32N(uint32(min(1<<f.Bits, math.MaxUint32))))
					}
					if rng.IntN(200) == 0 {
						f.SetElem(data, i, rng.Uint32N(3)<<(f.MantBits-1))
					}
					if i%601 == 17 {
						f.SetElem(data, i, f.MaxFinite+1)
					}
				}
			})
			m := modelOf(t, open(t, dir), "scale")
			for _, most := range []int{0, 1, 20, 200} {
				exps := func(labels int) []int {
					list := make([]int, labels)
					for i := range list {
						list[i] = rng.IntN(2*most+1) - most
					}
					return list
				}
				lowered := false
				ok(t, pass.ScaleUses(t.Context(), m, exps, func(tensor string, axis int, got, want pass.ScaleUse) {
					for label := range want.Sums {
						if math.Float64bits(got.Sums[label]) != math.Float64bits(want.Sums[label]) {
							t.Fatalf("%s %s: axis %d of %s: label %d has the sum %v, want %v", name, d, axis, tensor, label, got.Sums[label], want.Sums[label])
						}
					}
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("%s %s: axis %d of %s: %v, want %v", name, d, axis, tensor, got, want)
					}
					for _, e := range got.Exps {
						lowered = lowered || e != most && e != -most
					}
				}))
				if most == 200 && !lowered {
					t.Errorf("%s %s: no exponent was lowered", name, d)
				}
			}
		}
	}
}

// TestOutputRMSInOrder: the squares of an output's finite values are added in order.
func TestOutputRMSInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 13).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "columns")
		outAxis := rapid.IntRange(0, 1).Draw(t, "output axis")
		d := rapid.SampledFrom(testmodel.DTypes).Draw(t, "type")
		f := formatOf(d)
		x := memory(d, []int{rows, cols}, testmodel.DrawBytes(t, rows*cols*f.Bits/8, "data"))
		got, err := alone(t, x, outAxis).OutputRMS(t.Context())
		ok(t, err)
		sum, n := make([]float64, len(got)), make([]float64, len(got))
		for i, v := range values(x) {
			if out := []int{i / cols, i % cols}[outAxis]; v-v == 0 {
				sum[out] += float64(v * v)
				n[out]++
			}
		}
		for out, v := range got {
			if want := math.Sqrt(sum[out] / max(1, n[out])); v != want {
				t.Fatalf("%s: output %d is %v, want %v", d, out, v, want)
			}
		}
	})
}
