package experiment

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// Measured is a point with the operands that were actually multiplied.
type Measured struct {
	Point
	// Scaled is absent if the operands are the point's unscaled patterns.
	Scaled *Scaled `json:"scaled,omitempty"`
}

// Scaled are a point's operands divided by a power of two, because results could overflow.
type Scaled struct {
	X pattern.Pattern `json:"x"`
	W pattern.Pattern `json:"w"`
	// Flushed is the share of both operands' elements that scaling set to zero.
	Flushed float64 `json:"flushed"`
}

// maker draws the operands of a setup's points, one point after the other.
type maker struct {
	setup    Setup
	baseline Point
	workers  int
	x        operand // the x that was drawn last; if only the weights change, all points share it
}

// operand is a matrix with its pattern and seed.
type operand struct {
	gemm.Matrix
	pattern pattern.Pattern
	seed    uint64
	norm    float64 // of the longest row
}

// make returns a point's operands, scaled if results could overflow.
func (k *maker) make(ctx context.Context, p Point) (x, w gemm.Matrix, m Measured, err error) {
	m.Point = p
	forX, forW := k.setup.Seeds(k.baseline, p)
	if k.x.Data == nil || k.x.pattern != p.X || k.x.seed != forX {
		if k.x, err = k.draw(ctx, p.X, forX, k.setup.M); err != nil {
			return x, w, m, fmt.Errorf("x: %w", err)
		}
	}
	drawn, err := k.draw(ctx, p.W, forW, k.setup.N)
	if err != nil {
		return x, w, m, fmt.Errorf("w: %w", err)
	}
	x, w = k.x.Matrix, drawn.Matrix
	ex, ew := k.setup.exponents(k.x.norm, drawn.norm)
	if ex == 0 && ew == 0 {
		return x, w, m, nil
	}
	var lostX, lostW int
	m.Scaled = &Scaled{}
	if x, m.Scaled.X, lostX, err = k.x.scale(ex, k.workers); err != nil {
		return x, w, m, err
	}
	if w, m.Scaled.W, lostW, err = drawn.scale(ew, k.workers); err != nil {
		return x, w, m, err
	}
	m.Scaled.Flushed = float64(lostX+lostW) / (float64(x.Rows)*float64(x.Cols) + float64(w.Rows)*float64(w.Cols))
	return x, w, m, ctx.Err()
}

// draw returns rows×K elements of a pattern.
func (k *maker) draw(ctx context.Context, p pattern.Pattern, seed uint64, rows int) (operand, error) {
	d := k.setup.Type.Operand()
	data, err := p.Generate(ctx, pattern.Spec{DType: d, Rows: rows, Cols: k.setup.K, Seed: seed}, k.workers)
	if err != nil {
		return operand{}, err
	}
	o := operand{Matrix: gemm.Matrix{DType: d, Rows: rows, Cols: k.setup.K, Data: data}, pattern: p, seed: seed}
	o.norm = longestRow(o.Matrix, k.workers)
	if o.norm-o.norm != 0 {
		return operand{}, o.Finite()
	}
	return o, nil
}
