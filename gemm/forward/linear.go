package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Products multiplies by the weights of linear layers.
type Products interface {
	// Mul computes y[M,N] = x[M,K]·wᵀ for w[N,K], or x·w for w[K,N] if transposed is set. y may be columns
	// of a wider matrix; x and w have no gaps between rows. Mul keeps none of the three.
	Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error
}

// CPU multiplies with package sgemm.
type CPU struct {
	Workers int // default 0: all processors
}

// Mul multiplies; see Products.
func (c CPU) Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error {
	return sgemm.Mul(ctx, y, x, w, sgemm.Op{TransB: !transposed, Workers: c.Workers})
}

// linear is a linear layer: the names of its tensors.
type linear struct {
	weight          string
	bias            string // empty where it has none
	inputs, outputs int
	transposed      bool // the weight is stored [in, out]
	routed          bool // it is an expert's
}

func weightNames(layers []linear) []string {
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.weight
	}
	return names
}

// loaded is a linear layer with its values.
type loaded struct {
	linear
	w sgemm.Matrix
	b []float32 // nil where it has none
}

func (l linear) load(ctx context.Context, w Weights) (loaded, error) {
	values, err := tensor(ctx, w, l.weight, l.inputs*l.outputs)
	if err != nil {
		return loaded{}, err
	}
	rows, cols := l.outputs, l.inputs
	if l.transposed {
		rows, cols = cols, rows
	}
	b, err := optional(ctx, w, l.bias, l.outputs)
	return loaded{l, sgemm.Dense(rows, cols, values), b}, err
}

func loadAll(ctx context.Context, w Weights, layers []linear) ([]loaded, error) {
	all := make([]loaded, len(layers))
	for i, l := range layers {
		var err error
		if all[i], err = l.load(ctx, w); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// apply writes y[M,outputs] = x[M,inputs]·wᵀ + b.
func (d *Decoder) apply(ctx context.Context, l loaded, y, x sgemm.Matrix) error {
	p := d.Products
	if p == nil {
		p = CPU{d.Workers}
	}
	if err := p.Mul(ctx, y, x, l.w, l.transposed); err != nil || l.b == nil {
		return err
	}
	return d.rows(ctx, y.Rows, func(i int) { addTo(y.Row(i), l.b) })
}

// applyAll writes the outputs of layers that share an input, side by side.
func (d *Decoder) applyAll(ctx context.Context, layers []loaded, y, x sgemm.Matrix) error {
	at := 0
	for _, l := range layers {
		if err := d.apply(ctx, l, y.Slice(0, y.Rows, at, at+l.outputs), x); err != nil {
			return err
		}
		at += l.outputs
	}
	return nil
}

func addTo(y, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += x[i]
	}
}
