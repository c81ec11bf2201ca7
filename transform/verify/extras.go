package verify

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// extra reports whether the plan adds a tensor of this name.
func (c *claims) extra(name string) bool {
	for tensor := range c.steps {
		if s := c.folded(tensor); s != nil && s.Epilogue && name == tensor+weights.ShiftSuffix {
			return true
		}
	}
	return false
}

// extras compares the tensors of epilogues with the claimed shifts.
func (c *claims) extras(out *weights.Model, problem func(format string, args ...any)) error {
	if c.plan == nil {
		return nil
	}
	for _, tensor := range slices.Sorted(maps.Keys(c.steps)) {
		fold := c.folded(tensor)
		if fold == nil || !fold.Epilogue {
			continue
		}
		name := tensor + weights.ShiftSuffix
		t, ok := out.Tensor(name)
		if !ok {
			problem("tensor %q is missing from the output: a runtime needs it to subtract the shift", name)
			continue
		}
		err := weights.Guard(t.File, func() error {
			if wrong := c.wrongExtra(t, tensor, fold.Add); wrong != "" {
				problem("tensor %q %s", name, wrong)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wrongExtra describes how an epilogue's tensor differs from the claim; empty if it agrees.
func (c *claims) wrongExtra(t weights.Tensor, tensor string, add float64) string {
	w, _ := c.src.Tensor(tensor)
	rows, cols := w.Matrix()
	p := &pair{a: w}
	outputs := []int{rows, cols}[c.layout.OutAxis(p.a.Name)]
	if t.DType != weights.F32 || len(t.Shape) != 1 || t.Shape[0] != outputs {
		return fmt.Sprintf("is of type %s%v, not F32[%d]", t.DType, t.Shape, outputs)
	}
	f, _ := t.DType.Format()
	weights.Need(t.Data)
	for i := range outputs {
		if got := f.Elem(t.Data, i); got != math.Float32bits(float32(add)) {
			return fmt.Sprintf("holds %g at [%d], and the claimed shift is %g", f.Value(got), i, add)
		}
	}
	return ""
}
