package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
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
	// Rotate moves this model's weights to the memory of the first of the others, the first one's weights to the memory
	// of the second, and so on. The weights of the last model move to this model's memory; see [runner.Rotate].
	Rotate(ctx context.Context, others []Runner) error
	Close() error
}

// Step is a step of a whole model on a card; see [runner.Step].
type Step interface {
	power.Load
	// Elapsed is the time of all replays of the last Start, by the card's clock.
	Elapsed() (time.Duration, error)
	// Next returns the tokens that the last replay computed, one for each sequence.
	Next() ([]int32, error)
	// Kernels are the kernels of the step's products, one for each shape; empty if unknown.
	Kernels() []cuda.Kernel
	Close() error
}

// NewRunner loads a whole model onto the card, for sequences of at most longest tokens.
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

func (r gpuRunner) Rotate(ctx context.Context, others []Runner) error {
	all := []*runner.Model{r.Model}
	for _, o := range others {
		all = append(all, o.(gpuRunner).Model)
	}
	return runner.Rotate(ctx, all...)
}

// NewRunner of a simulated card only keeps what determines the card's power: the sizes of the linear layers and the
// toggling of their weights.
func (s simulated) NewRunner(ctx context.Context, m *weights.Model, layout *arch.Layout, longest int) (Runner, error) {
	d, err := decoder.New(m, layout)
	if err != nil {
		return nil, err
	}
	if longest > d.Limit {
		return nil, fmt.Errorf("sequences of %d tokens: the model's limit is %d tokens", longest, d.Limit)
	}
	r := &simRunner{card: s.card, place: s.nextPlace()}
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
			r.toggling += n * toggling(gemm.Matrix{DType: t.DType, Rows: t.Shape[0], Cols: t.Shape[1], Data: weights.Need(t.Data)})
		}
		return nil
	})
	r.toggling /= max(1, r.weights)
	return r, err
}

// simRunner is a whole model on a simulated card.
type simRunner struct {
	card              *power.Sim
	weights, toggling float64 // of all linear layers: number of weights, and mean share of bits that toggle
	place             float64 // effect of the addresses on power, as a factor
}

// simRest is the time of all other operations relative to the time of the linear layers. Their power is the power of
// weights that do not toggle.
const simRest = 0.25

func (r *simRunner) NewStep(ctx context.Context, name string, w runner.Work, _ Step) (Step, error) {
	if w.Sequences < 1 || w.Context < 1 {
		return nil, fmt.Errorf("%s: %v: give at least one sequence and one token", name, w)
	}
	s := simStep{runner: r, work: w, linear: max(2*r.weights*float64(w.Tokens())/simOps, 2*r.weights/simBytes, simKernel)}
	s.seconds = s.linear
	if !w.Linear {
		s.seconds += simRest * s.linear
	}
	s.SimLoad = r.card.Load(name, 0, s.seconds)
	return s, ctx.Err()
}

func (r *simRunner) Rotate(ctx context.Context, others []Runner) error {
	for _, o := range others { // r holds the weights that the next model gets
		to := o.(*simRunner)
		r.weights, to.weights = to.weights, r.weights
		r.toggling, to.toggling = to.toggling, r.toggling
	}
	return ctx.Err()
}

func (r *simRunner) Close() error { return nil }

type simStep struct {
	*power.SimLoad
	runner          *simRunner
	work            runner.Work
	linear, seconds float64 // time of the linear layers, and of all operations
}

// Start draws the power of the weights that are now in the model's memory.
func (s simStep) Start(n int) error {
	joules := s.linear*(simStill+simToggling*s.runner.toggling) + (s.seconds-s.linear)*simStill
	s.Draw(joules/s.seconds*s.runner.place, simMemory(2*s.runner.weights/s.seconds))
	return s.SimLoad.Start(n)
}

// Next depends on the weights, like a real model's tokens.
func (s simStep) Next() ([]int32, error) {
	return slices.Repeat([]int32{int32(1e6 * s.runner.toggling)}, s.work.Sequences), nil
}

func (simStep) Kernels() []cuda.Kernel { return nil }
func (simStep) Close() error           { return nil }
