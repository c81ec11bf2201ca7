package verify_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// correlated are Hessians of random correlated inputs. Layers with equally many inputs share them.
type correlated struct{ layout *arch.Layout }

func (correlated) Key() string { return "random" }

func (c correlated) Fit(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	claim := c.layout.Claims[tensor]
	k := claim.Axes[1-claim.OutAxis].Len()
	rng := rand.New(rand.NewPCG(uint64(k), 5))
	x := sgemm.Dense(k/2, k, nil) // fewer tokens than inputs
	for i := range x.Rows {
		common := rng.NormFloat64()
		for j := range x.Row(i) {
			x.Row(i)[j] = float32(common + rng.NormFloat64())
		}
	}
	h := sgemm.Dense(k, k, nil)
	return h, sgemm.Mul(ctx, h, x, x, sgemm.Op{TransA: true})
}

func (c correlated) Has(string) bool { return true }

func (c correlated) Held(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	return c.Fit(ctx, tensor)
}

// convertWith is convert with Hessians.
func convertWith(t *testing.T, src, passes string) string {
	t.Helper()
	m := open(t, src)
	in := correlated{testmodel.LayoutOf(t, m)}
	return testplan.Applied(t, m, in, testplan.Weighed(t, m, in, passes))
}

func TestWholeLayersAreAccepted(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	for i, d := range []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		model := []string{"llama-tiny", "gpt2-tiny"}[i%2]
		src := source(t, model, d)
		for _, passes := range [][]string{
			{"trellis=0.02", "sparsify=0.3/8x4,round=2,compensate", "scale,reorder,signs,prune=0.3,grid=4,compensate"},
			{"trellis=0.1,compensate", "sparsify=2:4,compensate", "reorder,prune=0.3,sparsify=0.2/runs,trellis=0.02,compensate"},
		}[(i+i/2)%2] {
			r := report(t, src, convertWith(t, src, passes))
			if !r.OK || !r.DropIn {
				t.Errorf("%s %s %s: drop-in %v: %s", d, model, passes, r.DropIn, problems(r))
			}
			for _, x := range r.Tensors {
				if x.Linear && x.Class != verify.Lossy || !x.Linear && x.Class == verify.Lossy {
					t.Errorf("%s %s %s: %s is %s", d, model, passes, x.Name, x.Class)
				}
			}
		}
	}
}

// TestBrokenWholeLayersAreSeen: properties that steps leave behind are checked in the result, but not how far values
// moved.
func TestBrokenWholeLayersAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	f, _ := weights.BF16.Format()
	for model, layer := range map[string]string{"llama-tiny": "model.layers.0.mlp.down_proj.weight", "gpt2-tiny": "transformer.h.0.mlp.c_proj.weight"} {
		src := source(t, model, weights.BF16)
		zero := func(v uint32) bool { return v == 0 }
		other := func(v uint32) bool { return v&^f.SignMask() != 0 }
		for _, c := range []struct {
			passes, want string
			which        func(v uint32) bool
			becomes      uint32
		}{
			{"reorder,signs,prune=0.3,trellis=0.01,compensate", "and the plan prunes this element", zero, f.FromValue(0.5)},
			{"sparsify=2:4,compensate", "by the manifest's steps it should be", zero, f.FromValue(0.5)},
			{"round=5,compensate", "the plan zeroes 5 low bits", other, f.FromValue(1.0078125)},
			{"grid=2,compensate", "is not a multiple of", other, f.FromValue(1.0 / 4096)},
			{"trellis=0.1,compensate", "NaN or infinite in only one of the models", other, f.MaxFinite + 1},
		} {
			out := convertWith(t, src, c.passes)
			wantOK(t, report(t, src, out))
			edit(t, out, layer, func(data []byte) {
				for i := range len(data) / 2 {
					if c.which(f.Elem(data, i)) {
						f.SetElem(data, i, c.becomes)
						return
					}
				}
				t.Fatalf("%s: no such value", c.passes)
			})
			vouch(t, out)
			wantProblem(t, report(t, src, out), c.want)
		}
	}
}

// TestDamagedPruneIsSeen: invalid positions are reported, not used as indices.
func TestDamagedPruneIsSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	src := source(t, "llama-tiny", 0)
	for _, list := range []string{"inputs", "outputs"} {
		for _, position := range []int{-1, 100_000} {
			out := convertWith(t, src, "prune=0.3,compensate")
			editManifest(t, out, func(m map[string]any) {
				for _, s := range steps(m, "prune") {
					s["prune"].(map[string]any)[list] = []int{position}
				}
			})
			r := report(t, src, out)
			wantProblem(t, r, fmt.Sprintf("position %d is not from 0 to", position))
			if !strings.Contains(problems(r), "prune: ") {
				t.Errorf("the pass is not named: %s", problems(r))
			}
		}
	}
}
