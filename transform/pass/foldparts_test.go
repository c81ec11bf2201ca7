package pass_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

func TestHalfAFoldIsRefused(t *testing.T) {
	m := tiny(t, "gpt2-tiny", weights.BF16)
	whole := makePlan(t, m, "shift", 0)
	ok(t, pass.CheckFolds(layoutOf(t, m), whole.Steps))
	for i, s := range whole.Steps {
		d := shifted(t, s)
		if d.Scale == "" && d.Bias == "" && d.Fill == nil {
			continue
		}
		less := slices.Delete(slices.Clone(whole.Steps), i, i+1)
		wantError(t, pass.CheckFolds(layoutOf(t, m), less), "is folded only in part", s.Tensor)
	}
	fills := slices.DeleteFunc(slices.Clone(whole.Steps), func(s *plan.Step) bool { return shifted(t, s).Fill == nil })
	p, out := testplan.Of(t, m, fills...), filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	wantError(t, err, "invalid plan: shift", "is folded only in part")
	testplan.NothingAt(t, out)
}

func TestFillsSwappedAreRefused(t *testing.T) {
	m := tiny(t, "gpt2-tiny", weights.BF16)
	zero := 0.0
	step := &plan.Step{Pass: "shift", Tensor: "transformer.h.0.ln_1.weight", Data: pass.Shifted{Fill: &zero}}
	wantError(t, pass.CheckFolds(layoutOf(t, m), []*plan.Step{step}), "no fold of a norm fills this tensor with 0")
}

// shifted returns the data of a step of the pass shift.
func shifted(t tb, s *plan.Step) pass.Shifted {
	t.Helper()
	d, err := plan.Data[pass.Shifted](s)
	ok(t, err)
	return d
}
