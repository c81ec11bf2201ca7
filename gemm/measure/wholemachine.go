package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Runner is a whole model on a card; see [runner.Model].
type Runner interface {
	// NewStep prepares a step; see [runner.Model.NewStep]. like is nil or another step of the same machine.
	NewStep(ctx context.Context, name string, w runner.Work, like Step) (Step, error)
	Close() error
}

// Step is a step of a whole model on a card; see [runner.Step].
type Step interface {
	power.Load
	// Elapsed is the card's time for the last Start's replays.
	Elapsed() (time.Duration, error)
	Close() error
}

// NewRunner puts a whole model on the card, for sequences of at most longest tokens.
func (g *gpu) NewRunner(ctx context.Context, m *weights.Model, layout *arch.Layout, longest int) (Runner, error) {
	d, err := decoder.New(m, layout)
	if err != nil {
		return nil, err
	}
	on, err := runner.New(ctx, g.device, d, runner.Stored(m, layout), runner.Options{Longest: longest, Resident: true})
	if err != nil {
		return nil, err
	}
	return gpuRunner{on}, nil
}

type gpuRunner struct{ *runner.Model }

func (r gpuRunner) NewStep(ctx context.Context, name string, w runner.Work, like Step) (Step, error) {
	same, _ := like.(*runner.Step)
	s, err := r.Model.NewStep(ctx, name, w, same)
	if err != nil {
		return nil, err // not a nil *runner.Step in an interface
	}
	return s, nil
}

// NewRunner of a simulated card keeps what the card's power depends on: the sizes of the linear layers and the switching
// activity of their weights.
func (s simulated) NewRunner(ctx context.Context, m *weights.Model, layout *arch.Layout, longest int) (Runner, error) {
	d, err := decoder.New(m, layout)
	if err != nil {
		return nil, err
	}
	if longest > d.Limit {
		return nil, fmt.Errorf("sequences of %d tokens: the model takes at most %d", longest, d.Limit)
	}
	r := &simRunner{card: s.card}
	err = weights.Guard(m.Dir, func() error {
		for _, l := range d.Layers() {
			if err := ctx.Err(); err != nil {
				return err
			}
			t, ok := m.Tensor(l.Tensor)
			if !ok || len(t.Shape) != 2 {
				continue
			}
			n := float64(l.Inputs) * float64(l.Outputs)
			r.weights += n
			r.toggling += n * toggling(gemm.Matrix{DType: t.DType, Rows: t.Shape[0], Cols: t.Shape[1], Data: t.Data})
		}
		return nil
	})
	r.toggling /= max(1, r.weights)
	return r, err
}

// simRunner is a whole model on a simulated card.
type simRunner struct {
	card              *power.Sim
	weights, toggling float64 // of all linear layers: their number, and the mean share of bits that toggle
}

// simRest is the time of all other operations as a share of the linear layers' time. Their power is that of weights that
// do not toggle.
const simRest = 0.25

func (r *simRunner) NewStep(ctx context.Context, name string, w runner.Work, _ Step) (Step, error) {
	if w.Sequences < 1 || w.Context < 1 {
		return nil, fmt.Errorf("%s: %v: give at least one sequence and one token", name, w)
	}
	linear := max(2*r.weights*float64(w.Tokens())/simOps, 2*r.weights/simBytes, simKernel)
	seconds, joules := linear, linear*(simStill+simToggling*r.toggling)
	if !w.Linear {
		seconds += simRest * linear
		joules += simRest * linear * simStill
	}
	load := r.card.Load(name, joules/seconds, seconds)
	load.Draw(joules/seconds, simMemory(2*r.weights/seconds))
	return simStep{load}, ctx.Err()
}

func (r *simRunner) Close() error { return nil }

type simStep struct{ *power.SimLoad }

func (simStep) Close() error { return nil }
