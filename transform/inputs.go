package transform

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Inputs tells what the layers of a model are fed with. It is called from several goroutines.
type Inputs interface {
	// Key tells model and tokens from every other.
	Key() string
	// Has says whether a tensor is a layer whose inputs are known.
	Has(tensor string) bool
	// Moments is H = XᵀX/tokens of a linear layer's inputs x[tokens, K], both axes in the source's
	// order. The caller may change what it gets.
	Moments(ctx context.Context, tensor string) (sgemm.Matrix, error)
	// Held is the same of tokens that are held back: no value is fitted to them, so they tell what
	// values that were fitted to the others lose. Dampings, lambdas and trials are chosen by them.
	Held(ctx context.Context, tensor string) (sgemm.Matrix, error)
}

// moments of the inputs of a program's result: in its order, with the signs and powers of two that
// its columns were divided by. They come from either function of Inputs.
func (p *program) moments(ctx context.Context, from func(context.Context, string) (sgemm.Matrix, error)) (sgemm.Matrix, error) {
	h, err := from(ctx, p.src.Name)
	if err != nil {
		return h, fmt.Errorf("%s: tensor %q: its layer's inputs: %w", p.src.File, p.src.Name, err)
	}
	axis, k := p.inputAxis()
	if h.Rows != k || h.Cols != k {
		return h, fmt.Errorf("%s: tensor %q: its layer has %d inputs, their moments are %d×%d", p.src.File, p.src.Name, k, h.Rows, h.Cols)
	}
	if axis.identity() {
		return h, nil
	}
	factor := make([]float32, k) // by place
	for i := range factor {
		from := at(axis.gather, i, i)
		factor[i] = ldexp(1, -at(axis.exp, from, 0))
		if at(axis.flip, from, false) {
			factor[i] = -factor[i]
		}
	}
	moved := sgemm.Dense(k, k, nil)
	for i := range k {
		to, from := moved.Row(i), h.Row(at(axis.gather, i, i))
		for j := range to {
			to[j] = from[at(axis.gather, j, j)] * factor[i] * factor[j]
		}
	}
	return moved, nil
}

// inputAxis is what the symmetries do along the inputs, and how many there are.
func (p *program) inputAxis() (axisMap, int) {
	if p.outAxis == 1 {
		return p.row, p.rows
	}
	return p.col, p.cols
}

// outputAxis is what the symmetries do along the outputs, and how many there are.
func (p *program) outputAxis() (axisMap, int) {
	if p.outAxis == 1 {
		return p.col, p.cols
	}
	return p.row, p.rows
}

// places turns positions of the source along an axis into places of the result.
func (a axisMap) places(n int, positions []int) ([]int, error) {
	place := make([]int, n)
	for i := range place {
		place[at(a.gather, i, i)] = i
	}
	out := make([]int, len(positions))
	seen := make([]bool, n)
	for i, p := range positions {
		if p < 0 || p >= n || seen[p] {
			return nil, fmt.Errorf("position %d is not one of %d, or is named twice", p, n)
		}
		seen[p] = true
		out[i] = place[p]
	}
	return out, nil
}

// checkInputs is an error where the plan was made with other inputs than are given.
func (p *Plan) checkInputs(in Inputs) error {
	switch {
	case p.Request.Inputs == "" && in == nil:
		return nil
	case p.Request.Inputs == "":
		return errors.New("the plan was made without tokens, and would give other bytes with them: leave them out")
	case in == nil:
		return fmt.Errorf("the plan weighs errors by what layers are fed with: %w", errNoInputs)
	case in.Key() != p.Request.Inputs:
		return fmt.Errorf("the plan was made with other tokens than these: %w", errNoInputs)
	}
	return nil
}
