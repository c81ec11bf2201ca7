package search

import (
	"context"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
)

// values are the [Values] of an allocation.
type values struct {
	s *search
	a allocation
}

// Tensor computes a layer's values; nil for an unchanged tensor.
func (v values) Tensor(ctx context.Context, name string) (out []float32, err error) {
	err = v.prepared(ctx, name, func(p *program.Program) (err error) {
		out, err = p.SourceValues(ctx, v.s.layers[v.s.index[name]].Workers)
		return err
	})
	return out, err
}

// Stored computes a layer's values as bytes of the stored type; nil for an unchanged tensor. If ok is false, only
// Tensor has the values.
func (v values) Stored(ctx context.Context, name string) (d weights.DType, data []byte, ok bool, err error) {
	ok = true
	err = v.prepared(ctx, name, func(p *program.Program) error {
		d = p.Source.DType
		data, ok = p.Stored()
		return nil
	})
	return d, data, ok, err
}

// prepared calls f with a layer's prepared program. For an unchanged tensor it does nothing.
func (v values) prepared(ctx context.Context, name string, f func(p *program.Program) error) error {
	i, ok := v.s.index[name]
	if !ok {
		return nil
	}
	steps := v.s.point(v.a, i).Steps
	if len(steps) == 0 {
		return nil
	}
	l := v.s.layers[i]
	return weights.Guard(l.Weight.Parts[0].File, func() error {
		p, err := l.Program(ctx, steps...)
		if err != nil {
			return err
		}
		if err := p.Prepare(ctx, l.Workers); err != nil {
			return err
		}
		defer p.Release()
		p.Remember()
		return f(p)
	})
}
