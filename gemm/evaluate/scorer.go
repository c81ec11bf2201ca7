package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// ErrNoConfig is wrapped by New's error for a model without config.json.
var ErrNoConfig = errors.New("there is no config.json with it, without which its loss cannot be computed: give a model's folder")

// Scorer computes the losses of models on a set of tokens. It knows one model's arithmetic, and scores
// any weights with that model's names and shapes.
type Scorer struct {
	Decoder *forward.Decoder
	Layout  *arch.Layout
	Tokens  tokens.Set
	// Device is the GPU that runs whole models; nil: the CPU does.
	Device *cuda.Device
	// Step, where set, is called after each of Steps steps of a model's score.
	Step func()
}

// New returns a scorer of models like m. family is m's, or nil for the one that the catalogue has for it.
// workers is the number of goroutines that compute; 0: all processors.
//
// It fails for a model without config.json ([ErrNoConfig]), of an unknown family
// ([arch.ErrUnknownFamily]), and of one that package decoder does not describe ([forward.ErrNoForward]).
func New(m *weights.Model, family *arch.Family, set tokens.Set, workers int) (*Scorer, error) {
	if m.Config == nil {
		return nil, fmt.Errorf("%s: %w", m.Dir, ErrNoConfig)
	}
	layout, err := arch.Resolve(m, family)
	if errors.Is(err, arch.ErrUnknownFamily) {
		return nil, fmt.Errorf("%s: its loss cannot be computed: %w", m.Dir, err)
	}
	if err != nil {
		return nil, err
	}
	d, err := forward.New(m, layout)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Dir, err)
	}
	d.Workers = workers
	return &Scorer{Decoder: d, Layout: layout, Tokens: set}, nil
}

// Steps is the number of steps of one model's score: the blocks and the head.
func (s *Scorer) Steps() int { return s.Decoder.Blocks() + 1 }

// Weights are a model's as a runtime uses them, without stored shifts.
func (s *Scorer) Weights(m *weights.Model) forward.Weights { return forward.Unshifted(m, s.Layout) }

// Score computes the loss of every predicted token on the CPU. o sees the inputs of the linear layers; it may be nil.
func (s *Scorer) Score(ctx context.Context, m *weights.Model, o forward.Observer) (*forward.Scores, error) {
	r, err := s.Decoder.Pass(ctx, s.Weights(m), s.Tokens.Sequences, forward.PassOptions{
		Keep: forward.Keep{Bytes: -1}, Observer: o, Step: s.step,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Dir, s.Tokens.Error(err))
	}
	return r.Scores, nil
}

// Comparison is the losses of two models on the same tokens, in nats per token.
type Comparison struct {
	Before, After float64
	forward.Comparison
	Tokens tokens.Set
}

// Compare scores two models, before first. o sees the inputs that before's linear layers get; it may be nil.
func (s *Scorer) Compare(ctx context.Context, before, after *weights.Model, o forward.Observer) (*Comparison, error) {
	a, err := s.Score(ctx, before, o)
	if err != nil {
		return nil, err
	}
	b, err := s.Score(ctx, after, nil)
	if err != nil {
		return nil, err
	}
	c, err := forward.Compare(a, b)
	return &Comparison{a.Loss(), b.Loss(), c, s.Tokens}, err
}
