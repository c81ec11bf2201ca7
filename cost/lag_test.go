package cost_test

import (
	"reflect"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestLags of the built-in card: streaming rows follow one another in two lanes. Elements in memory follow elements
// 64 bytes before in prefill, and 2 and 32 bytes before in decode.
func TestLags(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	flat := func(distance int, share float64) cost.Lag {
		return cost.Lag{Distance: distance, Weights: []float64{share, share, share, share}}
	}
	lanes := func(s float64) []cost.Lag {
		return []cost.Lag{{Distance: 1, Weights: []float64{0.7 * s, 1.4 * s, 0.7 * s, 0}}, {Distance: 5, Weights: []float64{0, 0, 0, 1.2 * s}}}
	}
	prefill, decode, mixed := cost.Workload{Prefill: 1}, cost.Workload{Decode: 1}, cost.Workload{Prefill: 0.3, Decode: 0.7}
	share := 0.4
	bf16 := cost.Weights{DType: weights.BF16, Rows: 4096, Cols: 512}
	turned := cost.Weights{DType: weights.BF16, OutAxis: 1, Rows: 512, Cols: 4096}
	few := cost.Weights{DType: weights.BF16, Rows: 1024, Cols: 512}
	for _, test := range []struct {
		w    cost.Weights
		axis int
		role cost.Role
		l    cost.Workload
		want []cost.Lag
	}{
		{bf16, 0, cost.Streaming, prefill, lanes(share)},
		{bf16, 0, cost.Streaming, mixed, lanes(mixed.Prefill * share)},
		{bf16, 0, cost.Streaming, decode, nil},
		{bf16, 0, cost.Stationary, prefill, nil},
		{few, 0, cost.Streaming, prefill, nil}, // with far fewer outputs the tokens stream
		{bf16, 1, cost.Stationary, prefill, []cost.Lag{flat(32, 0.04)}},
		{bf16, 1, cost.Stationary, decode, []cost.Lag{flat(1, 0.045), flat(16, 0.052)}},
		{turned, 0, cost.Streaming, prefill, nil},
		{turned, 1, cost.Streaming, prefill, append(lanes(share), flat(32, 0.04))},
		{cost.Weights{DType: weights.F8E4M3, Rows: 4096, Cols: 512}, 0, cost.Stationary, prefill, lanes(share)}, // the library swaps operands
		{cost.Weights{DType: weights.F8E4M3, Rows: 4096, Cols: 512}, 1, cost.Stationary, decode, []cost.Lag{flat(2, 0.045), flat(32, 0.052)}},
		{cost.Weights{DType: weights.F32, Rows: 4096, Cols: 512}, 1, cost.Stationary, decode, []cost.Lag{flat(8, 0.052)}}, // no elements are 2 bytes apart
	} {
		for range 2 { // the second result is cached
			if got, err := c.Lags(t.Context(), test.w, test.axis, test.role, test.l); err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v[%d %d] axis %d, %v, %v: %v (%v), want %v", test.w.DType, test.w.Rows, test.w.Cols, test.axis, test.role, test.l, got, err, test.want)
			}
		}
	}
	if _, err := c.Lags(t.Context(), cost.Weights{DType: weights.BF16}, 0, cost.Streaming, prefill); err == nil {
		t.Error("a matrix without a shape has lags")
	}
}
