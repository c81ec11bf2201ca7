package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Pass is a model's pass over a scorer's tokens: the losses, and the outputs that [Pass.Divergence] needs. Close frees
// the memory.
type Pass struct {
	Scores *forward.Scores

	scorer  *Scorer
	weights forward.Weights
	end     *forward.Result // on the CPU
	model   *runner.Model   // on a GPU
	pass    *runner.Pass
}

// Pass computes the losses of all tokens: on the GPU with float32 activations if Device is set, else on the CPU.
// Without a compiler for the GPU's kernels the error is a [cuda.ErrNoCompiler].
func (s *Scorer) Pass(ctx context.Context, m *weights.Model) (*Pass, error) {
	p := &Pass{scorer: s, weights: s.Weights(m)}
	run := p.onCPU
	if s.Device != nil {
		run = p.onGPU
	}
	if err := run(ctx, m); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", m.Dir, s.Tokens.Error(err)), p.Close())
	}
	return p, nil
}

func (p *Pass) onCPU(ctx context.Context, _ *weights.Model) (err error) {
	s := p.scorer
	p.end, err = s.Decoder.Pass(ctx, p.weights, s.Tokens.Sequences, forward.PassOptions{Keep: forward.Keep{Bytes: -1}, Step: s.step})
	if err == nil {
		p.Scores = p.end.Scores
	}
	return err
}

func (p *Pass) onGPU(ctx context.Context, m *weights.Model) (err error) {
	s := p.scorer
	if err := s.Decoder.Check(s.Tokens.Sequences); err != nil { // check before loading the weights
		return err
	}
	if p.model, err = runner.New(ctx, s.Device.gpu, s.Decoder.Decoder, runner.Stored(m, s.Layout), runner.Options{Exact: true, Longest: s.Tokens.T}); err != nil {
		return err
	}
	if p.pass, err = p.model.Pass(ctx, s.Tokens.Sequences, s.step); err != nil {
		return err
	}
	p.Scores = p.pass.Scores
	return nil
}

// step reports a step to s.Step.
func (s *Scorer) step(int, int) error {
	if s.Step != nil {
		s.Step()
	}
	return nil
}

// Divergence returns the divergence of a pass from a reference: the mean over all tokens of KL(reference ‖ pass), in
// nats. Both must be passes of scorers with the same tokens, on the CPU or on the same GPU.
func (p *Pass) Divergence(ctx context.Context, reference *Pass) (float64, error) {
	if p.pass != nil && reference.pass != nil {
		return p.pass.Divergence(ctx, reference.pass)
	}
	if p.end == nil || reference.end == nil {
		return 0, errors.New("the divergence needs two passes on the CPU, or two passes on the same GPU")
	}
	d, _, err := p.scorer.Decoder.Divergence(ctx, reference.end, p.end.End, p.weights)
	return d, err
}

// Close frees the memory on the card. It is idempotent.
func (p *Pass) Close() error {
	var errs []error
	if p.pass != nil {
		errs = append(errs, p.pass.Close())
	}
	if p.model != nil {
		errs = append(errs, p.model.Close())
	}
	p.pass, p.model, p.end = nil, nil, nil
	return errors.Join(errs...)
}
