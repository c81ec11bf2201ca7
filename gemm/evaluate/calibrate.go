package evaluate

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Calibrated is a model on a device that computes calibration statistics and references for a search. Close frees its
// memory.
type Calibrated interface {
	// Collect is [hessian.Collect].
	Collect(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (*hessian.Store, error)
	// CollectAndScore is [hessian.CollectAndScore]. The pass over the tokens is the reference of an evaluator.
	CollectAndScore(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (*hessian.Store, Reference, error)
	Close() error
}

// Reference is a pass of a model over tokens. It compares the model with changed weights; see [divergence.Evaluator]. Its
// PerLayer uses the first [divergence.FewSequences] sequences. Several goroutines may ask changed weights for different
// tensors at once. Close frees its memory.
type Reference interface {
	Loss() float64
	PerLayer(ctx context.Context, base, changed divergence.Weights, done func(layer string, nats float64) error) error
	WholeModel(ctx context.Context, changed divergence.Weights) (divergence, loss float64, interval [2]float64, err error)
	Close() error
}

// OnCPU returns a model that runs on the CPU. It must have the architecture of the scorer.
func (s *Scorer) OnCPU(m *weights.Model) Calibrated { return onCPU{s.Decoder, forward.Stored(m)} }

type onCPU struct {
	decoder *forward.Decoder
	weights forward.Weights
}

func (c onCPU) Collect(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (*hessian.Store, error) {
	return hessian.Collect(ctx, c.decoder, c.weights, tokens, dir, o)
}

func (c onCPU) CollectAndScore(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (*hessian.Store, Reference, error) {
	few := divergence.FewSequences(tokens)
	store, pass, err := hessian.CollectAndScore(ctx, c.decoder, c.weights, tokens, dir, forward.Keep{Entries: few}, o)
	if err != nil {
		return nil, nil, err
	}
	return store, cpuReference{divergence.FromPass(c.decoder, c.weights, pass, divergence.Options{PerLayer: few})}, nil
}

func (onCPU) Close() error { return nil }

type cpuReference struct{ *divergence.Evaluator }

func (cpuReference) Close() error { return nil }
