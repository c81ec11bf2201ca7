package judge

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// Options are New's.
type Options struct {
	// Progress is called behind each of total parts: the blocks and the head. Default: nobody.
	Progress func(done, total int)
}

// Judge is a model and what it makes of some tokens.
type Judge struct {
	d      *forward.Decoder
	own    forward.Weights
	end    *forward.State // behind the model's last block
	scores *forward.Scores
}

// New runs the model over the tokens, and keeps its state behind the last block and its losses. own
// are its weights, which are asked for again whenever something is judged. The sequences belong to
// the Judge.
func New(ctx context.Context, d *forward.Decoder, own forward.Weights, tokens [][]int32, o Options) (*Judge, error) {
	progress := o.Progress
	if progress == nil {
		progress = func(int, int) {}
	}
	j := &Judge{d: d, own: own}
	var err error
	if j.end, err = d.Start(ctx, own, tokens); err != nil {
		return nil, err
	}
	total := d.Blocks() + 1
	for i := range d.Blocks() {
		if err := d.Block(ctx, i, own, j.end, nil); err != nil {
			return nil, err
		}
		progress(i+1, total)
	}
	if j.scores, err = d.Score(ctx, own, j.end, nil); err != nil {
		return nil, err
	}
	progress(total, total)
	return j, nil
}

// Loss is the model's own, in nats per predicted token.
func (j *Judge) Loss() float64 { return j.scores.Loss() }

// walk takes a state to where block to is its next.
func (j *Judge) walk(ctx context.Context, s *forward.State, w forward.Weights, to int) error {
	for s.Next < to {
		if err := j.d.Block(ctx, s.Next, w, s, nil); err != nil {
			return err
		}
	}
	return nil
}

// finish takes a state through all blocks that are left, to its divergence from the model's.
func (j *Judge) finish(ctx context.Context, s *forward.State, w forward.Weights) (float64, error) {
	if err := j.walk(ctx, s, w, j.d.Blocks()); err != nil {
		return 0, err
	}
	return j.d.Divergence(ctx, j.end, j.own, s, w)
}
