package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// ErrNoConfig is the error for a model without config.json.
var ErrNoConfig = errors.New("its loss cannot be computed without a config.json: give a model's folder")

// ErrNoTokens marks the error for a set of tokens without a token whose loss could be computed. It is [tokens.ErrNone].
var ErrNoTokens = tokens.ErrNone

// Scorer computes the losses of models on a set of tokens. It has the architecture of one model, and scores any model with
// the same names and shapes of weights.
type Scorer struct {
	Decoder *forward.Decoder
	Layout  *arch.Layout
	Tokens  tokens.Set
	// Device is the GPU that runs whole models; nil: the CPU.
	Device *Device
	// Step is called after each of the Steps steps of a model's score; nil: it is not called.
	Step func()
}

// New returns a scorer on the tokens set for models with m's architecture. family is m's; nil: that of the catalogue.
// workers is the number of goroutines that compute; 0: all processors.
//
// The error is an [ErrNoConfig] for a model without config.json, an [arch.ErrUnknownFamily] for an unknown family, and a
// [forward.ErrNoForward] for a family that package decoder does not describe. A set in which no sequence has two tokens is
// an [ErrNoTokens].
func New(m *weights.Model, family *arch.Family, set tokens.Set, workers int) (*Scorer, error) {
	s, err := describe(m, family)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(set.Sequences, func(tokens []int32) bool { return len(tokens) > 1 }) {
		return nil, fmt.Errorf("%s: no sequence has two tokens, so the loss cannot be computed: %w", m.Dir, ErrNoTokens)
	}
	s.Tokens, s.Decoder.Workers = set, workers
	return s, nil
}

// Check returns the errors of [New] that do not depend on tokens.
func Check(m *weights.Model, family *arch.Family) error {
	_, err := describe(m, family)
	return err
}

func describe(m *weights.Model, family *arch.Family) (*Scorer, error) {
	if err := m.Usable(); err != nil {
		return nil, err
	}
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
	if errors.Is(err, forward.ErrNoForward) {
		return nil, fmt.Errorf("%s: %w, so the model's loss cannot be computed", m.Dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Dir, err)
	}
	return &Scorer{Decoder: d, Layout: layout}, nil
}

// Steps returns the number of steps of one model's score: one for each block and one for the head.
func (s *Scorer) Steps() int { return s.Decoder.Blocks() + 1 }

// Weights returns a model's weights as a runtime uses them: stored shifts are subtracted.
func (s *Scorer) Weights(m *weights.Model) forward.Weights { return forward.Unshifted(m, s.Layout) }

// Score computes the loss of every predicted token, in nats, on the CPU. o observes the inputs of the linear layers; it
// may be nil.
func (s *Scorer) Score(ctx context.Context, m *weights.Model, o forward.Observer) (*forward.Scores, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if err := m.Usable(); err != nil {
		return nil, err
	}
	r, err := s.Decoder.Pass(ctx, s.Weights(m), s.Tokens.Sequences, forward.PassOptions{
		Keep: forward.Keep{Bytes: -1}, Observer: o, Step: s.step,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Dir, s.Tokens.Error(err))
	}
	return r.Scores, nil
}

// Comparison holds the losses of two models on the same tokens, in nats per token, and their difference.
type Comparison struct {
	Before, After float64
	forward.Comparison
	Tokens tokens.Set
}

// Compare scores two models, before first. o observes the inputs of before's linear layers; it may be nil. Before it scores, it
// returns an error for a model that is nil or closed. If only after's score has an error, the
// comparison has the loss of before alone.
func (s *Scorer) Compare(ctx context.Context, before, after *weights.Model, o forward.Observer) (*Comparison, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if err := errors.Join(before.Usable(), after.Usable()); err != nil {
		return nil, err
	}
	a, err := s.Score(ctx, before, o)
	if err != nil {
		return nil, err
	}
	b, err := s.Score(ctx, after, nil)
	if err != nil {
		return &Comparison{Before: a.Loss(), Tokens: s.Tokens}, err
	}
	c, err := forward.Compare(a, b)
	return &Comparison{a.Loss(), b.Loss(), c, s.Tokens}, err
}
