package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/tally"
)

// Run returns the losses of all predicted tokens. It is [Decoder.Pass] without kept results. o may be nil.
func (d *Decoder) Run(ctx context.Context, w Weights, tokens [][]int32, o Observer) (*Scores, error) {
	r, err := d.Pass(ctx, w, tokens, PassOptions{Keep: Keep{Bytes: -1}, Observer: o})
	if err != nil {
		return nil, err
	}
	return r.Scores, nil
}

// PassOptions are the options of [Decoder.Pass].
type PassOptions struct {
	Keep
	// Observer receives the inputs of the linear layers. Default: none.
	Observer Observer
	// Step is called after each of total steps: the blocks and the head. An error ends the pass. Default: not called.
	Step func(done, total int) error
}

// Pass runs tokens through the whole model once: Start, every Block, and the head.
func (d *Decoder) Pass(ctx context.Context, w Weights, tokens [][]int32, o PassOptions) (*Result, error) {
	step := o.Step
	if step == nil {
		step = func(int, int) error { return nil }
	}
	s, err := d.Start(ctx, w, tokens)
	if err != nil {
		return nil, err
	}
	tally.Add(ctx, "forward.Pass", 1)
	r, total := &Result{End: s, weights: w}, d.Blocks()+1
	entries := min(o.Entries, len(tokens))
	keep := entries > 0 && o.fits(d.Blocks()*s.first(entries).Hidden.Rows, d.Hidden)
	for i := range d.Blocks() {
		if keep {
			r.entries = append(r.entries, s.first(entries).Clone())
		}
		if err := d.Block(ctx, i, w, s, o.Observer); err != nil {
			return nil, err
		}
		if err := step(i+1, total); err != nil {
			return nil, err
		}
	}
	if o.fits(s.Hidden.Rows, d.Vocab) {
		r.logits, r.logSums = sgemm.Dense(s.Hidden.Rows, d.Vocab, nil), make([]float64, s.Hidden.Rows)
	}
	if r.Scores, err = d.score(ctx, w, r, o.Observer); err != nil {
		return nil, err
	}
	return r, step(total, total)
}
