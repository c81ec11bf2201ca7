package transform

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/weights"
)

// What became of a point that a finer curve may lack: itself, or a gentler one.
func TestFindIsNeverCoarser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t).hull()
		i := rapid.IntRange(0, len(c)-1).Draw(t, "i")
		if c.find(c[i]) != i {
			t.Fatalf("point %d of %v is found at %d", i, c, c.find(c[i]))
		}
		other := point{Error: rapid.Float64Range(0, 10).Draw(t, "error")}
		if k := c.find(other); k > 0 && c[k].Error > other.Error || k+1 < len(c) && c[k+1].Error <= other.Error {
			t.Fatalf("an error of %g is found at %d of %v", other.Error, k, c)
		}
	})
}

// A layer's curve begins with the layer as it is, and its points are what their steps come to.
func TestCurvesAreWhatStepsComeTo(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		in := feed(t, m)
		passes := choices(t, "prune,trellis,compensate=0.01")
		p := &planner{ctx: t.Context(), model: m, layout: layoutOf(t, m), plan: &Plan{}, opt: options(t, "", 0)}
		p.opt.Inputs = in
		ok(t, p.compile())
		linearOf(t, m, func(x weights.Tensor, outAxis int) {
			target := &target{p: p, tensor: x, format: formatOf(x.DType)}
			var err error
			target.base, err = target.compile()
			ok(t, err)
			c, err := target.curve(passes, p.frees(x.Name), lambdas())
			ok(t, err)
			if len(c) < 5 || c[0].Steps != nil || c[0].Error != 0 {
				t.Fatalf("%s: %d points, the first is %+v", x.Name, len(c), c[0])
			}
			for i, point := range c[1:] {
				after := tensors{x.Name: x}.under(t, m, in, point.Steps)[x.Name]
				// The moments are in float32: of hardly any error they do not say more.
				if share := lost(x, after, outAxis, in.held[x.Name]); math.Abs(share-point.Error) > 1e-5*share+1e-7 {
					t.Errorf("%s: point %d loses %g, not %g", x.Name, i+1, share, point.Error)
				}
			}
		})
	}
}

func TestLambdasRise(t *testing.T) {
	list := lambdas()
	for i, l := range list {
		if !(l > 0 && l <= 1000) || i > 0 && l <= list[i-1] {
			t.Errorf("lambda %d is %g", i, l)
		}
	}
}
