package pass

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// savesNothing is why no pass chooses an exact change of an index that quantised weights have.
const savesNothing = "quantised weights share it, and other orders, signs and exponents of codes are predicted to save no energy (docs/quantised.md)"

// givenStep is the step of a given order. It is an error if the codes of a quantised weight cannot follow it.
func (m *Model) givenStep(ctx context.Context, ix *arch.Index, labels []int) (*plan.Step, error) {
	syms := program.Symmetries{ix.Name: {Perm: labels}}
	c := m.Compiler.With(syms)
	for _, u := range ix.Uses {
		w, ok := m.Weights.Weight(u.Tensor)
		if !ok || w.Quantised == nil {
			continue
		}
		if _, err := c.Program(ctx, w, nil); err != nil {
			return nil, fmt.Errorf("index %s cannot take this order: %w", ix.Name, err)
		}
	}
	return &plan.Step{Index: ix.Name, Data: labels}, nil
}
