package rounding

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestFaultsAreTold: a failure while a Hessian is factorised, columns are ordered or rounded, or a loss is measured, ends with its
// error.
func TestFaultsAreTold(t *testing.T) {
	const k = 70 // more than a panel, and more than a leaf
	h, w := secondMoment(5, k, 2*k), normal(6, 9, k)
	testmodel.EachFault(t, func(ctx context.Context, _ *testmodel.Faults) error {
		p, err := Prune(ctx, w, h, PruneOptions{Workers: 1})
		if err != nil {
			return err
		}
		f, err := NewFactor(ctx, h, FactorOptions{First: p.Order[:3], Workers: 1})
		if err != nil {
			return err
		}
		q, err := Round(ctx, w, f, Bits{format(t, weights.BF16), 3}, Options{Zero: 3, Workers: 1})
		if err != nil {
			return err
		}
		_, err = Measure(ctx, w, q, h, 1)
		return err
	})
}

// late is a chooser whose Begin fails after some calls.
type late struct {
	Stored
	calls *int
}

func (c late) Begin(n, k int) (func(Column), error) {
	if *c.calls--; *c.calls < 0 {
		return nil, testmodel.ErrFault
	}
	return c.Stored.Begin(n, k)
}

// TestChoosersFault: an error of a chooser ends Round, whenever it occurs.
func TestChoosersFault(t *testing.T) {
	for calls := range 2 {
		n := calls
		if _, err := Round(t.Context(), normal(1, 2, 3), Flat(3), late{Stored{format(t, weights.BF16)}, &n}, Options{Workers: 1}); !errors.Is(err, testmodel.ErrFault) {
			t.Errorf("after %d calls: %v", calls, err)
		}
	}
}

// TestShapes: matrices that do not fit are a mistake of the program. One row, one column and no rows fit.
func TestShapes(t *testing.T) {
	ctx, b := t.Context(), format(t, weights.BF16)
	dense := func(n, k int) sgemm.Matrix { return sgemm.Dense(n, k, nil) }
	factor := func(order, d int) *Factor { return &Factor{Order: make([]int, order), D: make([]float64, d)} }
	for name, call := range map[string]func() error{
		"order":           func() error { _, err := Round(ctx, dense(2, 3), factor(2, 3), Stored{b}, Options{}); return err },
		"weights":         func() error { _, err := Round(ctx, dense(2, 3), factor(3, 2), Stored{b}, Options{}); return err },
		"zero":            func() error { _, err := Round(ctx, dense(2, 3), Flat(3), Stored{b}, Options{Zero: 4}); return err },
		"negative zero":   func() error { _, err := Round(ctx, dense(2, 3), Flat(3), Stored{b}, Options{Zero: -1}); return err },
		"rows of q":       func() error { _, err := Power(ctx, dense(2, 3), dense(1, 3), dense(3, 3), 1); return err },
		"columns of q":    func() error { _, err := Power(ctx, dense(2, 3), dense(2, 2), dense(3, 3), 1); return err },
		"rows of h":       func() error { _, err := Power(ctx, dense(2, 3), dense(2, 3), dense(2, 3), 1); return err },
		"columns of h":    func() error { _, err := Power(ctx, dense(2, 3), dense(2, 3), dense(3, 2), 1); return err },
		"one row of q":    func() error { _, err := Power(ctx, dense(2, 1), dense(1, 1), dense(1, 1), 1); return err },
		"Prune":           func() error { _, err := Prune(ctx, dense(2, 3), dense(2, 2), PruneOptions{}); return err },
		"Prune, one more": func() error { _, err := Prune(ctx, dense(2, 3), dense(4, 4), PruneOptions{}); return err },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			t.Errorf("%s: %v", name, call())
		}()
	}
	if _, err := Round(ctx, dense(2, 3), Flat(3), Stored{b}, Options{Zero: 3}); err != nil {
		t.Error(err)
	}
	for _, h := range []sgemm.Matrix{dense(3, 2), dense(2, 3)} {
		if _, err := NewFactor(ctx, h, FactorOptions{}); err == nil || !strings.Contains(err.Error(), "square") {
			t.Errorf("a Hessian of %d×%d: %v", h.Rows, h.Cols, err)
		}
	}
	one := sgemm.Dense(1, 1, []float32{3})
	l, err := Measure(ctx, one, sgemm.Dense(1, 1, []float32{2}), sgemm.Dense(1, 1, []float32{5}), 1)
	if err != nil || l != (Loss{Error: 5, Signal: 45}) {
		t.Errorf("one weight: %+v (%v)", l, err)
	}
	if l, err := Measure(ctx, dense(0, 1), dense(0, 1), one, 1); err != nil || l != (Loss{}) {
		t.Errorf("no outputs: %+v (%v)", l, err)
	}
	if p, err := Prune(ctx, one, sgemm.Dense(1, 1, []float32{5}), PruneOptions{}); err != nil || p.Scale != 1/45.0 || len(p.Error) != 2 {
		t.Errorf("pruning of one weight: %+v (%v)", p, err)
	}
	if p, err := Prune(ctx, one, one, PruneOptions{Signal: 4}); err != nil || p.Scale != 0.25 {
		t.Errorf("pruning with a known signal: %+v (%v)", p, err)
	}
}

// TestNegativePivot: the error for a matrix with a negative pivot has the pivot and the damping.
func TestNegativePivot(t *testing.T) {
	h := sgemm.Dense(2, 2, []float32{1, 2, 2, 1})
	if _, err := NewFactor(t.Context(), h, FactorOptions{}); err == nil || !strings.Contains(err.Error(), "(pivot -3 with 0.001 added)") {
		t.Errorf("%v", err)
	}
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(-1))} { // below the diagonal
		h := sgemm.Dense(2, 2, []float32{1, 0, v, 1})
		if _, err := NewFactor(t.Context(), h, FactorOptions{}); err == nil || !strings.Contains(err.Error(), "(1, 0)") {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// TestLimitsOfRates: rates at the ends of their ranges are valid, and those beyond are not.
func TestLimitsOfRates(t *testing.T) {
	f := format(t, weights.F8E4M3)
	for _, c := range []struct {
		valid  bool
		change func(r *Rates)
	}{
		{true, func(r *Rates) {}},
		{true, func(r *Rates) { clear(r.Significant) }},
		{true, func(r *Rates) { r.Significant[0] = 9 }}, // zero may cost more than a power of two
		{true, func(r *Rates) { r.Significant[2] = r.Significant[1] }},
		{false, func(r *Rates) { r.Significant[2] = r.Significant[1] - 0.01 }},
		{false, func(r *Rates) { r.Significant[4] = math.Inf(1) }},
		{false, func(r *Rates) { r.Significant[1] = math.NaN() }},
		{false, func(r *Rates) { r.Significant[0] = -0.01 }},
		{false, func(r *Rates) { r.Significant = r.Significant[:4] }},
		{false, func(r *Rates) { r.Significant = append(r.Significant, 2) }},
		{true, func(r *Rates) { r.Line = 0 }},
		{false, func(r *Rates) { r.Line = -0.01 }},
		{false, func(r *Rates) { r.Differ, r.Run = math.Inf(1), 4 }},
		{true, func(r *Rates) { r.Run = 3 }}, // without coupling, runs do not count
		{true, func(r *Rates) { r.Differ, r.Run = 1, 1 }},
		{true, func(r *Rates) { r.Sign, r.Run = 1, 128 }},
		{false, func(r *Rates) { r.Sign, r.Run = 1, 256 }},
		{false, func(r *Rates) { r.Sign, r.Run = 1, 6 }},
		{false, func(r *Rates) { r.Differ, r.Run = 1, 0 }},
		{false, func(r *Rates) { r.Differ, r.Run = 1, -4 }},
		{true, func(r *Rates) { r.Lanes = 256 }},
		{false, func(r *Rates) { r.Lanes = 257 }},
		{false, func(r *Rates) { r.Lanes = -1 }},
		{true, func(r *Rates) { r.Sign, r.Run, r.Lanes = 1, 256, 1 }},
		{true, func(r *Rates) { r.Sign, r.Run, r.Lanes = 1, 64, 3 }},
		{false, func(r *Rates) { r.Sign, r.Run, r.Lanes = 1, 128, 3 }},
	} {
		r := risingRates(f)
		c.change(&r)
		if err := r.Validate(f); (err == nil) != c.valid {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
