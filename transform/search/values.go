package search

import (
	"context"

	"github.com/lowtoggle/lowtoggle/weights"
)

// values are the [Values] of an allocation.
type values struct {
	s *search
	a allocation
}

// Tensor computes a layer's values; nil for a tensor that stays as it is.
func (v values) Tensor(ctx context.Context, name string) (out []float32, err error) {
	i, ok := v.s.index[name]
	if !ok {
		return nil, nil
	}
	steps := v.s.point(v.a, i).Steps
	if len(steps) == 0 {
		return nil, nil
	}
	l := v.s.layers[i]
	err = weights.Guard(l.Weight.Parts[0].File, func() error {
		p, err := l.Program(ctx, steps...)
		if err != nil {
			return err
		}
		if err := p.Prepare(ctx, l.Workers); err != nil {
			return err
		}
		defer p.Release()
		p.Remember()
		out, err = p.SourceValues(ctx)
		return err
	})
	return out, err
}
