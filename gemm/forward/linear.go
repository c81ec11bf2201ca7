package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// linear is a linear layer with its weights.
type linear struct {
	decoder.Linear
	w sgemm.Matrix
	b []float32 // nil: no bias
}

func loadLinear(ctx context.Context, w Weights, l decoder.Linear) (linear, error) {
	values, err := tensor(ctx, w, l.Weight, l.Inputs*l.Outputs)
	if err != nil {
		return linear{}, err
	}
	rows, cols := l.Outputs, l.Inputs
	if l.Transposed {
		rows, cols = cols, rows
	}
	b, err := optional(ctx, w, l.Bias, l.Outputs)
	return linear{l, sgemm.Dense(rows, cols, values), b}, err
}

// apply writes y[M,outputs] = x[M,inputs]·wᵀ + b.
func (l linear) apply(p *pass, y, x sgemm.Matrix) error {
	if err := p.products.Mul(p, y, x, l.w, l.Transposed); err != nil || l.b == nil {
		return err
	}
	return p.rows(y.Rows, func(i int) { addTo(y.Row(i), l.b) })
}

// linears are layers that share an input.
type linears []linear

func loadLinears(ctx context.Context, w Weights, layers []decoder.Linear) (linears, error) {
	all := make(linears, len(layers))
	for i, l := range layers {
		var err error
		if all[i], err = loadLinear(ctx, w, l); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// apply writes the concatenated outputs of the layers.
func (all linears) apply(p *pass, y, x sgemm.Matrix) error {
	at := 0
	for _, l := range all {
		if err := l.apply(p, y.Slice(0, y.Rows, at, at+l.Outputs), x); err != nil {
			return err
		}
		at += l.Outputs
	}
	return nil
}

// described returns the layers without their values.
func (all linears) described() []decoder.Linear {
	d := make([]decoder.Linear, len(all))
	for i, l := range all {
		d[i] = l.Linear
	}
	return d
}
