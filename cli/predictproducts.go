package cli

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/transform"
)

// multiplied is a product that is predicted.
type multiplied struct {
	layer   string
	problem gemm.Problem
	x, w    blocks
}

// predict predicts every source.
func (f *forecast) predict(ctx context.Context, event func(transform.Event)) (r *predictReport, err error) {
	defer orInterrupt(ctx, &err)
	like, err := f.like()
	if err != nil {
		return nil, err
	}
	xs := map[shape]blocks{}
	products, total := make([][]multiplied, len(f.sources)), 0
	for i, s := range f.sources {
		layers, err := f.take(ctx, s, like)
		if err != nil {
			return nil, err
		}
		for j, l := range layers {
			scale := l
			if j < len(like) && like[j].rows == l.rows && like[j].cols == l.cols {
				scale = like[j]
			}
			p, err := f.product(ctx, l, scale.blocks, xs)
			if err != nil {
				return nil, err
			}
			products[i] = append(products[i], p)
		}
		if f.compared {
			if err := f.comparable(products[0], products[i], s); err != nil {
				return nil, fmt.Errorf("%w; leave --w out to predict each by itself", err)
			}
		}
		total += len(layers)
	}
	r = &predictReport{}
	done := 0
	for i, s := range f.sources {
		var parts []part
		for j, p := range products[i] {
			e, err := f.one(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.text, p.layer, err)
			}
			products[i][j] = multiplied{} // and the weights that were made whole for it
			parts = append(parts, part{p.layer, p.problem, e})
			done++
			event(transform.Event{Stage: "predict", Done: int64(done), Total: int64(total)})
		}
		r.add(f, s, parts)
	}
	return r, nil
}

// orInterrupt puts an interrupt in the place of an error that came of it, which names a layer.
func orInterrupt(ctx context.Context, err *error) {
	if *err != nil && ctx.Err() != nil {
		*err = ctx.Err()
	}
}

// one predicts a product.
func (f *forecast) one(ctx context.Context, p multiplied) (cost.Prediction, error) {
	q := cost.Product{Type: p.problem.Type.String(), M: p.problem.M, N: p.problem.N, K: p.problem.K, Role: f.role, Cold: f.cold}
	return f.model.Predict(ctx, q, p.x.at, p.w.at)
}

// product is that of a layer with its activations, in the type that is asked for or the layer's
// own. Weights of another type are scaled as scale is.
func (f *forecast) product(ctx context.Context, l placed, scale blocks, xs map[shape]blocks) (p multiplied, err error) {
	if err := ctx.Err(); err != nil {
		return p, err
	}
	typ, err := f.typeOf(layer{name: l.name, w: gemm.Matrix{DType: l.dtype}})
	if err != nil {
		return p, err
	}
	p.layer = l.name
	if p.x, err = f.xBlocks(ctx, l, typ, xs); err != nil {
		return p, fmt.Errorf("x of %s: %w", l.name, err)
	}
	if p.w, err = l.fit(typ.Operand(), scale); err != nil {
		return p, fmt.Errorf("%s: %w", l.name, err)
	}
	p.problem = gemm.Problem{M: p.x.rows, N: p.w.rows, K: p.w.cols, Type: typ, Streaming: f.role == cost.Streaming}
	if err := p.problem.Validate(); err != nil {
		return p, usageError{err}
	}
	return p, nil
}

// xBlocks are a layer's activations; those of patterns are the same for all layers with as many
// inputs, and kept in drawn.
func (f *forecast) xBlocks(ctx context.Context, l placed, typ gemm.Type, drawn map[shape]blocks) (blocks, error) {
	d, m := typ.Operand(), f.m
	if f.x.path != "" {
		stored, err := f.storedActivations(l.name, l.cols, m)
		if err != nil {
			return blocks{}, err
		}
		x := matrixBlocks(stored, false, f.x.path)
		return x.fit(d, x)
	}
	if m == 0 {
		m = defaultTokens
	}
	key := shape{d, m, l.cols}
	if x, ok := drawn[key]; ok {
		return x, nil
	}
	s := f.xSource(typ)
	if err := s.holds(ctx, d, f.seed); err != nil {
		return blocks{}, err
	}
	x, err := patternBlocks(s, pattern.Spec{DType: d, Rows: m, Cols: l.cols, Seed: f.seed})
	if err == nil {
		x, err = x.fit(d, x)
	}
	drawn[key] = x
	return x, err
}

// comparable refuses a ratio between different products.
func (f *forecast) comparable(w, other []multiplied, s source) error {
	if len(w) != len(other) {
		return fmt.Errorf("the layers of %s (%d) and of %s (%d) differ in number: only the same products can be compared",
			f.sources[0].text, len(w), s.text, len(other))
	}
	for i := range w {
		if w[i].problem != other[i].problem {
			return fmt.Errorf("%s is %v, and %s of %s is %v: only the same products can be compared",
				other[i].layer, other[i].problem, w[i].layer, f.sources[0].text, w[i].problem)
		}
	}
	return nil
}
