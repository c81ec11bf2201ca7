package cost_test

import (
	"context"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

// drawnOperand returns a pattern as an operand.
func drawnOperand(t *testing.T, text string, d weights.DType, rows, cols int) cost.Operand {
	t.Helper()
	p, err := pattern.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, row, rs, col, cs int) ([]byte, error) {
		return p.Block(ctx, pattern.Spec{DType: d, Rows: rows, Cols: cols, Seed: 5}, pattern.Range{From: row, To: row + rs}, pattern.Range{From: col, To: col + cs})
	}
}

// TestPredictDequantised: with many tokens, only a share of the energy depends on the dequantised weights. With few
// tokens, another share depends on the packed codes.
func TestPredictDequantised(t *testing.T) {
	found, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/h200.json"
	if err := found.Write(file); err != nil {
		t.Fatal(err)
	}
	c, err := cost.ReadCalibration(file)
	if err != nil {
		t.Fatal(err)
	}
	const n, k = 4096, 4096
	prefill := cost.Product{Type: arith.BF16, M: 4096, N: n, K: k}
	decode := cost.Product{Type: arith.BF16, M: 16, N: n, K: k, Cold: true}
	x := drawnOperand(t, "normal(0,1)", weights.BF16, 4096, k)
	w, zero := drawnOperand(t, "normal(0,0.02)", weights.BF16, n, k), drawnOperand(t, "zeros", weights.BF16, n, k)
	codes, none := drawnOperand(t, "normal(0,16)", weights.F8E4M3, n, k/2), drawnOperand(t, "zeros", weights.F8E4M3, n, k/2)
	predict := func(p cost.Product, w, codes cost.Operand) cost.Prediction {
		r, err := c.PredictDequantised(t.Context(), p, x, w, codes)
		if err != nil {
			t.Fatal(err)
		}
		if !(r.Interval[0] < r.Relative && r.Relative < r.Interval[1]) {
			t.Errorf("%v: %v of %v", p, r.Relative, r.Interval)
		}
		return r
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	whole, err := c.Predict(t.Context(), prefill, x, zero)
	if err != nil {
		t.Fatal(err)
	}
	shares := *c.Facts.Kernels.Dequantised
	near("a share of prefill", predict(prefill, zero, none).Relative, 1-shares.Operands*(1-whole.Relative))
	streamed := prefill
	streamed.Role = cost.Streaming
	wholeStreamed, err := c.Predict(t.Context(), streamed, x, zero)
	if err != nil {
		t.Fatal(err)
	}
	near("a share of prefill with weights that stream", predict(streamed, zero, none).Relative, 1-shares.StreamingOperands*(1-wholeStreamed.Relative))
	both, units, memory := predict(decode, zero, none), predict(decode, zero, codes), predict(decode, w, none)
	all := predict(decode, w, codes)
	near("both shares of decode", all.Relative-both.Relative, all.Relative-units.Relative+all.Relative-memory.Relative)
	if !(both.Relative < units.Relative && units.Relative < memory.Relative && memory.Relative < all.Relative) {
		t.Errorf("zeros everywhere %v, in the units %v, in memory %v, nowhere %v", both.Relative, units.Relative, memory.Relative, all.Relative)
	}
	for _, r := range []cost.Prediction{both, units, memory, all} {
		if width := r.Interval[1] - r.Interval[0]; width > 0.2 { // about 0.15 if units and memory both have zeros
			t.Errorf("%v of %v: the interval is as wide as the prediction itself", r.Relative, r.Interval)
		}
	}
	if both.Joules != nil || both.Relative < 1-shares.FewOperands-shares.Codes {
		t.Errorf("%+v", both)
	}
	bands := func(o cost.Operand, d weights.DType, cols int) cost.Weights {
		data, err := o(t.Context(), 0, 256, 0, cols)
		if err != nil {
			t.Fatal(err)
		}
		return cost.Weights{DType: d, Rows: n, Cols: cols, Bands: []cost.Band{{Data: data}}, Scale: 0.02}
	}
	layer := func(w, codes cost.Operand, l cost.Workload) float64 {
		e, err := c.DequantisedEnergy(t.Context(), bands(w, weights.BF16, k), bands(codes, weights.F8E4M3, k/2), cost.Stationary, l)
		if err != nil || !(e.Interval[0] < e.Relative && e.Relative < e.Interval[1]) {
			t.Fatal(e, err)
		}
		return e.Relative
	}
	load := cost.Workload{Decode: 1}
	if a, b := layer(zero, none, load), both.Relative; math.Abs(a-b) > 0.03 {
		t.Errorf("a layer of zeros is predicted as %v, its product as %v", a, b)
	}
	if a, b := layer(zero, codes, load), layer(zero, none, load); !(b < a-0.03) {
		t.Errorf("codes in memory make no difference: %v and %v", a, b)
	}
	near("a mean of phases", layer(zero, none, cost.Workload{Prefill: 0.5, Decode: 0.5}), (layer(zero, none, load)+layer(zero, none, cost.Workload{Prefill: 1}))/2)
	c.Facts.Kernels.Dequantised = nil
	near("a card without shares", predict(prefill, zero, none).Relative, whole.Relative)
}
