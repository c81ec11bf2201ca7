package divergence

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// Options are New's.
type Options struct {
	// Progress is called behind each of total parts: the blocks and the head. Default: nobody.
	Progress func(done, total int)
}

// Evaluator is a model and what it makes of some tokens.
type Evaluator struct {
	d      *forward.Decoder
	own    forward.Weights
	end    *forward.State // behind the model's last block
	scores *forward.Scores
}

// New runs the model over the tokens, and keeps its state behind the last block and its losses. own
// are its weights, which are asked for again whenever something is judged. The sequences belong to
// the Evaluator.
func New(ctx context.Context, d *forward.Decoder, own forward.Weights, tokens [][]int32, o Options) (*Evaluator, error) {
	progress := o.Progress
	if progress == nil {
		progress = func(int, int) {}
	}
	e := &Evaluator{d: d, own: own}
	var err error
	if e.end, err = d.Start(ctx, own, tokens); err != nil {
		return nil, err
	}
	total := d.Blocks() + 1
	for i := range d.Blocks() {
		if err := d.Block(ctx, i, own, e.end, nil); err != nil {
			return nil, err
		}
		progress(i+1, total)
	}
	if e.scores, err = d.Score(ctx, own, e.end, nil); err != nil {
		return nil, err
	}
	progress(total, total)
	return e, nil
}

// Loss is the model's own, in nats per predicted token.
func (e *Evaluator) Loss() float64 { return e.scores.Loss() }

// walk takes a state to where block to is its next.
func (e *Evaluator) walk(ctx context.Context, s *forward.State, w forward.Weights, to int) error {
	for s.Next < to {
		if err := e.d.Block(ctx, s.Next, w, s, nil); err != nil {
			return err
		}
	}
	return nil
}

// finish takes a state through all blocks that are left, to its divergence from the model's.
func (e *Evaluator) finish(ctx context.Context, s *forward.State, w forward.Weights) (float64, error) {
	if err := e.walk(ctx, s, w, e.d.Blocks()); err != nil {
		return 0, err
	}
	return e.d.Divergence(ctx, e.end, e.own, s, w)
}
