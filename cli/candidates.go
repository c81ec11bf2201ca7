package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// candidates makes the products of --w and of every --against.
func (q *request) candidates(ctx context.Context, m measure.Machine) (baseline measure.Candidate, variants []measure.Candidate, err error) {
	streaming := q.role == cost.Streaming
	var like []layer
	if q.w.path == "" {
		if err := q.fits(m); err != nil {
			return baseline, nil, err
		}
		like = []layer{{name: "w", w: gemm.Matrix{DType: q.shape.Type.Operand(), Rows: q.shape.N, Cols: q.shape.K}}}
	}
	base, err := q.layers(ctx, q.w, like)
	if err != nil {
		return baseline, nil, err
	}
	if s := q.shape; s != nil && q.w.path != "" && (len(base) != 1 || base[0].w.Rows != s.N || base[0].w.Cols != s.K) {
		return baseline, nil, usagef("--shape: %s is %s with N=%d, K=%d; give M alone", q.w.text, term.Plural(len(base), "layer", "layers, the first"), base[0].w.Rows, base[0].w.Cols)
	}
	if baseline, err = q.candidate(ctx, q.label(q.w), base, base, q.m, streaming); err != nil {
		return baseline, nil, err
	}
	for _, s := range q.against {
		layers, err := q.layers(ctx, s, base)
		if err != nil {
			return baseline, nil, err
		}
		v, err := q.candidate(ctx, q.label(s), layers, base, q.m, streaming)
		if err != nil {
			return baseline, nil, err
		}
		variants = append(variants, v)
	}
	return baseline, variants, nil
}

// label is what a source is called in tables: the tensors are left out where all have the same.
func (q *request) label(s source) string {
	if s.path == "" || slices.ContainsFunc(q.against, func(a source) bool { return a.path != "" && a.tensors != q.w.tensors }) {
		return s.text
	}
	return s.path + ":"
}

// fits refuses drawn operands that the card has no room for, before they fill the host's memory.
func (q *request) fits(m measure.Machine) error {
	room := 16e9 // of a simulated card
	if p := m.Platform(); p != nil {
		room = float64(p.Memory)
	}
	if need := float64(2+len(q.against)) * q.shape.Bytes(); need > room {
		return fmt.Errorf("--shape: %s take %s on the card, and it has %s: choose a smaller shape",
			term.Plural(2+len(q.against), "product", "products"), term.Size(int64(min(need, math.MaxInt64/2))), term.Size(int64(room)))
	}
	return nil
}

// compare measures, with progress. ready, unless nil, is called when everything is on the card.
func (q *request) compare(ctx context.Context, m measure.Machine, meter power.Options, cold bool, baseline measure.Candidate, variants []measure.Candidate, event func(transform.Event), ready func()) (r *measure.Result, err error) {
	o := measure.Options{Cold: cold, Meter: meter}
	o.Prepared = func(done, total int) {
		event(transform.Event{Stage: "prepare", Done: int64(done), Total: int64(total)})
		if done == total && ready != nil {
			ready()
		}
	}
	var from *float64 // when the comparison's first window began, in the meter's seconds
	comparing := false
	o.Meter.Events = power.Events{
		Stage: func(name string) {
			comparing = name == "compare"
			event(transform.Event{Stage: name})
		},
		Window: func(w power.Window) {
			if !comparing {
				return
			}
			if from == nil {
				from = &w.Begin
			}
			spent := time.Duration((w.Begin + w.Length - *from) * float64(time.Second))
			event(transform.Event{Stage: "measure", Done: int64(min(spent, meter.Time)), Total: int64(meter.Time)})
		},
	}
	err = q.guard(func() (err error) {
		r, err = measure.Compare(ctx, m, baseline, variants, o)
		return err
	})
	return r, err
}

// guard is for work that reads the models' mapped memory.
func (q *request) guard(work func() error) error {
	paths := slices.Clone(q.mapped)
	for _, s := range append([]source{q.w, q.x}, q.against...) {
		if s.path != "" && !slices.Contains(paths, s.path) {
			paths = append(paths, s.path)
		}
	}
	return weights.Guard(strings.Join(paths, ", "), work)
}

// title says what was multiplied.
func (q *request) title(c measure.Candidate) string {
	first := c.Products[0].Problem
	what := first.String()
	if n := len(c.Products); n > 1 {
		what = fmt.Sprintf("%d layers, %d tokens, %v %v", n, first.M, first.Type, q.role)
	}
	if q.cold {
		what += ", weights from memory"
	}
	what += ", x " + q.xText(first.Type)
	if q.w.tensors != "" {
		what += ", w " + q.w.tensors
	}
	return what
}

// xText is how --x would be written.
func (o *operands) xText(typ gemm.Type) string {
	if o.x.text == "" {
		return usualX(typ).text
	}
	return o.x.text
}
