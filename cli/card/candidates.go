package card

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
)

// candidates makes the products of --w and of every --against.
func (q *request) candidates(ctx context.Context, m measure.Machine) (baseline measure.Candidate, variants []measure.Candidate, err error) {
	sources := append([]operand.Source{q.w}, q.against...)
	if !q.w.HasShape() {
		if err := q.checkRoom(m); err != nil {
			return baseline, nil, err
		}
	}
	q.set = operand.NewSet(q.operands())
	products, err := q.set.Products(ctx, sources...)
	if err != nil {
		return baseline, nil, operandError(err)
	}
	all := make([]measure.Candidate, len(sources))
	for i, s := range sources {
		if all[i], err = measure.NewCandidate(ctx, q.label(s), products[i]); err != nil {
			return baseline, nil, err
		}
	}
	return all[0], all[1:], nil
}

// printKernels prints the kernels of quantised layers.
func printKernels(w io.Writer, all []measure.Candidate) {
	var printed []string
	for _, c := range all {
		for _, k := range c.Kernels {
			if !slices.Contains(printed, k) {
				printed = append(printed, k)
				term.Remark(w, "kernel", k)
			}
		}
	}
}

// coverage returns the measured part of each model, by the model's name in tables. Models that are measured
// completely are left out.
func (q *request) coverage() (map[string]*predict.Coverage, error) {
	sources := append(slices.Clone(q.against), q.w)
	covered, err := predict.Coverages(q.set, sources...)
	named := map[string]*predict.Coverage{}
	for _, s := range sources {
		if c := covered[s.Text]; c != nil {
			named[q.label(s)] = c
		}
	}
	return named, err
}

// label names a source in tables. The tensors are left out if all sources have the same ones.
func (q *request) label(s operand.Source) string {
	if s.Path == "" || slices.ContainsFunc(q.against, func(a operand.Source) bool { return a.Path != "" && a.Tensors != q.w.Tensors }) {
		return s.Text
	}
	return s.Path + ":"
}

// checkRoom returns an error if the operands of patterns exceed the card's memory. The check comes first because the
// operands would also fill the host's memory.
func (q *request) checkRoom(m measure.Machine) error {
	room := 16e9 // of a simulated card
	if p := m.Platform(); p != nil {
		room = float64(p.Memory)
	}
	if need := float64(2+len(q.against)) * q.shape.Bytes(); need > room {
		return fmt.Errorf("--shape: %s need %s of memory, and the card has %s: choose a smaller shape",
			term.Plural(2+len(q.against), "product", "products"), term.Size(int64(min(need, math.MaxInt64/2))), term.Size(int64(room)))
	}
	return nil
}

// title describes the products.
func (q *request) title(c measure.Candidate) string {
	first := c.Products[0].Problem
	what := first.String()
	if n := len(c.Products); n > 1 {
		what = fmt.Sprintf("%d layers, %d tokens", n, first.M)
		if len(c.Kernels) == 0 {
			what += fmt.Sprintf(", %v %v", first.Type, q.Role)
		}
	}
	if q.cold {
		what += ", weights from memory"
	}
	what += ", x " + q.operands().XText(first.Type)
	if q.w.Tensors != "" {
		what += ", w " + q.w.Tensors
	}
	return what
}
