package pass

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// savesNothing is the reason why no pass changes an index that quantised weights share.
const savesNothing = "quantised weights share this index, and other orders, signs and exponents of their codes are predicted to save no energy (docs/quantised.md)"

// givenStep returns the step for a given order. If the codes of a quantised weight cannot follow the order, it
// returns an error.
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
