package verify

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

func TestZerosElsewhereAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	const up = "model.layers.1.mlp.up_proj.weight"
	f, _ := weights.BF16.Format()
	src := source(t, "llama-tiny", 0)
	original, _ := open(t, src).Tensor(up)
	for _, passes := range []string{"sparsify=0.3/element", "sparsify=0.3/8x4", "sparsify=0.3/runs", "sparsify=2:4", "sparsify=0.3/element,grid=16"} {
		for name, change := range map[string]func(data []byte, i int) bool{
			"one more": func(data []byte, i int) bool {
				if v := f.Value(f.Elem(data, i)); math.Abs(float64(v)) < 0.02 {
					return false
				}
				f.SetElem(data, i, 0)
				return true
			},
			"one less": func(data []byte, i int) bool {
				if f.Value(f.Elem(data, i)) != 0 || f.Value(f.Elem(original.Data, i)) == 0 {
					return false
				}
				f.SetElem(data, i, f.Elem(original.Data, i))
				return true
			},
		} {
			t.Run(passes+" "+name, func(t *testing.T) {
				out := convert(t, src, passes, 0)
				wantOK(t, report(t, src, out))
				edit(t, out, up, func(data []byte) {
					for i := range len(data) / 2 {
						if change(data, i) {
							return
						}
					}
					t.Fatal("nothing to change")
				})
				vouch(t, out)
				wantProblem(t, report(t, src, out), up+": ")
			})
		}
	}
}

// The runs found cost no more than any other choice, and no less than they cost.
func TestRunsAreTheCheapest(t *testing.T) {
	cost := func(values []float32, zero func(k int) bool, worth float64) (sum float64) {
		for k, v := range values {
			if zero(k) {
				sum += float64(v)*float64(v) - worth
			}
			if k > 0 && zero(k) != zero(k-1) {
				sum += 2 * worth
			}
		}
		return sum
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float32Range(-4, 4), 1, 10).Draw(t, "values")
		worth := rapid.Float64Range(0.01, 8).Draw(t, "worth")
		s := newZeroing(&transform.Zeros{Runs: worth}, 1, len(values), 0)
		zero := s.row(0, func(dst []float32, _ int) { copy(dst, values) })
		best := math.Inf(1)
		for mask := range 1 << len(values) {
			best = min(best, cost(values, func(k int) bool { return mask>>k&1 == 1 }, worth))
		}
		if got := cost(values, func(k int) bool { return zero[k] }, worth); math.Abs(got-best) > 1e-9 {
			t.Fatalf("cost %g, the best is %g", got, best)
		}
	})
}

func TestOfEqualsTheLaterAreZeroed(t *testing.T) {
	s := newZeroing(&transform.Zeros{Pattern: "2:4"}, 1, 9, 0)
	got := s.row(0, func(dst []float32, _ int) { copy(dst, []float32{1, -1, 1, 1, 0, float32(math.Inf(1)), 0, 0, 0}) })
	if want := []bool{2: true, 3: true, 8: false}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
