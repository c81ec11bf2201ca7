package transform

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

func TestHalfAFoldIsRefused(t *testing.T) {
	m := tiny(t, "gpt2-tiny", weights.BF16)
	whole := makePlan(t, m, "shift", 0)
	ok(t, checkFolds(layoutOf(t, m), whole.Steps))
	for i, s := range whole.Steps {
		if s.Shift.Scale == "" && s.Shift.Bias == "" && s.Shift.Fill == nil {
			continue
		}
		less := slices.Delete(slices.Clone(whole.Steps), i, i+1)
		wantError(t, checkFolds(layoutOf(t, m), less), "invalid plan: shift", "is folded only in part", s.Tensor)
	}
	fills := slices.DeleteFunc(slices.Clone(whole.Steps), func(s *Step) bool { return s.Shift.Fill == nil })
	p, out := planOf(t, m, fills...), filepath.Join(t.TempDir(), "out")
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{})
	wantError(t, err, "is folded only in part")
	nothingAt(t, out)
}

func TestFillsSwappedAreRefused(t *testing.T) {
	m := tiny(t, "gpt2-tiny", weights.BF16)
	zero := 0.0
	step := &Step{Pass: "shift", Tensor: "transformer.h.0.ln_1.weight", Shift: &Shift{Fill: &zero}}
	wantError(t, checkFolds(layoutOf(t, m), []*Step{step}), "no fold leaves it filled with 0")
}
