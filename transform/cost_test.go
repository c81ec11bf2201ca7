package transform_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestCostKnowsWhereOutputsAre: transposed matrices are distinguished from others.
func TestCostKnowsWhereOutputsAre(t *testing.T) {
	for name, want := range map[string]int{"llama-tiny": 0, "gpt2-tiny": 1} {
		o := options(t, "round=4", 0)
		o.Cost = testmodel.CostFunc(func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
			if w.OutAxis != want {
				t.Errorf("%s: outputs lie along axis %d", name, w.OutAxis)
			}
			return testmodel.TogglesCost{}.Energy(ctx, w, role, l)
		})
		_, err := transform.Plan(t.Context(), tiny(t, name, weights.BF16), o)
		ok(t, err)
	}
}

// TestCostFails: a cost model that does not know a type ends planning with an error that names the layer.
func TestCostFails(t *testing.T) {
	m := tiny(t, "llama-tiny", weights.BF16)
	o := options(t, "round=4", 0)
	unknown := errors.New("BF16 is not calibrated")
	o.Cost = testmodel.CostFunc(func(context.Context, cost.Weights, cost.Role, cost.Workload) (cost.Estimate, error) {
		return cost.Estimate{}, unknown
	})
	_, err := transform.Plan(t.Context(), m, o)
	if !errors.Is(err, unknown) {
		t.Fatalf("the error is %v", err)
	}
	wantError(t, err, "proj.weight", ".safetensors")
}

// lagged is a cost model that checks the calls of Lags. It returns the lags of streaming outputs, or none.
type lagged struct {
	testmodel.TogglesCost
	t      *testing.T
	stream bool
	asked  *atomic.Int64
}

func (c lagged) Lags(ctx context.Context, w cost.Weights, axis int, role cost.Role, l cost.Workload) ([]cost.Lag, error) {
	c.asked.Add(1)
	if role != cost.Streaming || l != (cost.Workload{Prefill: 1}) || w.DType != weights.BF16 || w.Rows*w.Cols == 0 {
		c.t.Errorf("Lags was called for role %v and workload %v with %v[%d %d]", role, l, w.DType, w.Rows, w.Cols)
	}
	if !c.stream || axis != w.OutAxis {
		return nil, nil
	}
	return c.TogglesCost.Lags(ctx, w, axis, role, l)
}

// TestLagsAreAsked: the cost model decides whether rows stream. Neurons are ordered only if they do.
func TestLagsAreAsked(t *testing.T) {
	for _, stream := range []bool{false, true} {
		var asked atomic.Int64
		o := options(t, "reorder", 0)
		o.Workload, o.Role = cost.Workload{Prefill: 1}, cost.Streaming
		o.Cost = lagged{t: t, stream: stream, asked: &asked}
		p, err := transform.Plan(t.Context(), tiny(t, "llama-tiny", weights.BF16), o)
		ok(t, err)
		found := slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return s.Index == "layers.0.ffn" })
		if stream && !found {
			t.Error("rows stream, and neurons keep their order")
		}
		if !stream && len(p.Steps) > 0 {
			t.Errorf("rows do not stream, and there are %d steps", len(p.Steps))
		}
		if asked.Load() == 0 {
			t.Error("Lags was not called")
		}
	}
}
