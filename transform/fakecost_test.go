package transform

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// togglesCost is a cost model for tests: energy goes with the bits that differ between neighbours
// in memory, so that what is coarse saves, and zeros save more together than scattered.
type togglesCost struct{}

func (togglesCost) Energy(_ context.Context, w cost.Weights, _ cost.Role, _ cost.Workload) (cost.Estimate, error) {
	size := w.DType.Bits() / 8
	toggles, all := 0, 0
	for _, band := range w.Bands {
		a, b := band.Data[:max(0, len(band.Data)-size)], band.Data[min(size, len(band.Data)):]
		all += 8 * len(a)
		for ; len(a) >= 8; a, b = a[8:], b[8:] {
			toggles += bits.OnesCount64(binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b))
		}
		for i := range a {
			toggles += bits.OnesCount8(a[i] ^ b[i])
		}
	}
	e := 2 * float64(toggles) / float64(max(1, all))
	return cost.Estimate{Relative: e, Interval: [2]float64{e - 0.01, e + 0.01}, Calibration: "toggles"}, nil
}

// costFunc is a cost model of one function.
type costFunc func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error)

func (f costFunc) Energy(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
	return f(ctx, w, role, l)
}

// The model sees the transformed rows that it is told it sees, of the whole matrix's shape, in the
// role and workload asked for.
func TestCostSeesTheResult(t *testing.T) {
	const rows, cols = 2000, 48
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = 1 + float32(i*i%127)/128
	}
	x := matrix(weights.BF16, cols, v)
	target := alone(x, 0)
	step := &Step{Pass: "round", Round: &Bits{Zeroed: 4}}
	result := alone(x, 0).result(t, step)
	seen := 0
	target.p.opt.Role, target.p.opt.Workload = cost.Streaming, cost.Workload{Decode: 1}
	target.p.opt.Cost = costFunc(func(_ context.Context, w cost.Weights, role cost.Role, l cost.Workload) (e cost.Estimate, err error) {
		if w.DType != weights.BF16 || w.OutAxis != 0 || w.Rows != rows || w.Cols != cols || len(w.Bands) < 2 {
			t.Errorf("%v, outputs %d, %d×%d, %d bands", w.DType, w.OutAxis, w.Rows, w.Cols, len(w.Bands))
		}
		if role != cost.Streaming || l != (cost.Workload{Decode: 1}) {
			t.Errorf("%v, %v", role, l)
		}
		before, after := true, true
		for _, b := range w.Bands {
			at := b.First * cols * 2
			before = before && string(b.Data) == string(x.Data[at:at+len(b.Data)])
			after = after && string(b.Data) == string(result.Data[at:at+len(b.Data)])
		}
		if before == after {
			t.Errorf("bands are before: %v, after: %v", before, after)
		}
		if after {
			seen++
			return cost.Estimate{Relative: 0.5}, nil
		}
		return cost.Estimate{Relative: 1}, nil
	})
	_, out, err := target.choose([][]*Step{{step}}, []string{"round=4"})
	ok(t, err)
	if seen == 0 || out.Before.Relative != 1 || out.After.Relative != 0.5 {
		t.Errorf("the result was seen %d times; %+v, %+v", seen, out.Before, out.After)
	}
}

// Transposed matrices are told from others.
func TestCostKnowsWhereOutputsAre(t *testing.T) {
	for name, want := range map[string]int{"llama-tiny": 0, "gpt2-tiny": 1} {
		o := options(t, "round=4", 0)
		o.Cost = costFunc(func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
			if w.OutAxis != want {
				t.Errorf("%s: outputs lie along axis %d", name, w.OutAxis)
			}
			return togglesCost{}.Energy(ctx, w, role, l)
		})
		_, err := Make(t.Context(), tiny(t, name, weights.BF16), o)
		ok(t, err)
	}
}

// A model that does not know a type ends the planning, and says where.
func TestCostFails(t *testing.T) {
	m := tiny(t, "llama-tiny", weights.BF16)
	o := options(t, "round=4", 0)
	unknown := errors.New("BF16 is not calibrated")
	o.Cost = costFunc(func(context.Context, cost.Weights, cost.Role, cost.Workload) (cost.Estimate, error) {
		return cost.Estimate{}, unknown
	})
	_, err := Make(t.Context(), m, o)
	if !errors.Is(err, unknown) {
		t.Fatalf("the error is %v", err)
	}
	wantError(t, err, "proj.weight", ".safetensors")
}
