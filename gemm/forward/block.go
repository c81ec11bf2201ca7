package forward

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Observer sees the inputs of linear layers.
type Observer interface {
	// Input is called with each input x[tokens, inputs], batch by batch in the order of the sequences.
	// There is one call for all layers that share the input; names are their weights' names. The input of a
	// routed expert has the tokens that are routed to it. If a batch has none, there is no call. x is read
	// only and valid during the call. An error ends the pass.
	Input(names []string, x sgemm.Matrix) error
}

// step is half of a block, or a whole block whose halves read the same state: h += Σ branches(h).
type step []branch

// branch is the sum of parts that read the same norm of the residual stream.
type branch struct {
	norm  norm // missing: the stream itself
	parts []part
}

// first are the layers that share the branch's input.
func (b branch) first() []linear {
	var all []linear
	for _, p := range b.parts {
		all = append(all, p.first()...)
	}
	return all
}

// layers are all, in the order in which they are computed.
func (s step) layers() []linear {
	var all []linear
	for _, b := range s {
		all = append(all, b.first()...)
		for _, p := range b.parts {
			all = append(all, p.rest()...)
		}
	}
	return all
}

// Block moves a state through block i, which must be its next one. After an error the state is unusable. o may
// be nil.
func (d *Decoder) Block(ctx context.Context, i int, w Weights, s *State, o Observer) error {
	if i >= len(d.blocks) {
		return fmt.Errorf("there is no block %d: the model has %d, and then comes Score", i, len(d.blocks))
	}
	if err := s.at(i); err != nil {
		return err
	}
	for _, step := range d.blocks[i] {
		if err := d.step(ctx, step, w, s, o); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
	}
	s.Next++
	if err := s.finite(); err != nil {
		return fmt.Errorf("block %d: %w", i, err)
	}
	return nil
}

// at returns an error unless block i is the state's next one.
func (s *State) at(i int) error {
	if s.Next != i {
		return fmt.Errorf("a state whose next block is %d cannot go through block %d: take it there block by block", s.Next, i)
	}
	return nil
}

func (d *Decoder) step(ctx context.Context, s step, w Weights, state *State, o Observer) error {
	rows := state.largestBatch()
	branches := make([]loadedBranch, len(s))
	for i, b := range s {
		var err error
		if branches[i], err = d.load(ctx, b, w, rows); err != nil {
			return err
		}
	}
	ys := sgemm.Dense(rows, d.hidden, nil)
	for b := range state.batches() {
		p := &pass{ctx, d, o, b.sequences}
		h, y := b.hidden(state), ys.Slice(0, b.rows, 0, d.hidden)
		for _, l := range branches { // all, before any is added
			if err := d.normalize(ctx, l.norm, l.x.Slice(0, b.rows, 0, d.hidden), h); err != nil {
				return err
			}
		}
		for _, l := range branches {
			if err := l.add(p, h, y); err != nil {
				return err
			}
		}
	}
	return nil
}

type loadedBranch struct {
	branch
	norm  loadedNorm
	parts []loadedPart
	x     sgemm.Matrix // of the largest batch
}

func (d *Decoder) load(ctx context.Context, b branch, w Weights, rows int) (l loadedBranch, err error) {
	l = loadedBranch{branch: b, x: sgemm.Dense(rows, d.hidden, nil)}
	if l.norm, err = b.norm.load(ctx, w); err != nil {
		return l, err
	}
	for _, p := range b.parts {
		part, err := p.load(ctx, w, rows)
		if err != nil {
			return l, err
		}
		l.parts = append(l.parts, part)
	}
	return l, nil
}

// add adds the outputs of the parts for x to h. y is a buffer.
func (l loadedBranch) add(p *pass, h, y sgemm.Matrix) error {
	x := l.x.Slice(0, h.Rows, 0, h.Cols)
	if err := p.observe(x, l.first()...); err != nil {
		return err
	}
	for _, part := range l.parts {
		if err := part.apply(p, y, x); err != nil {
			return err
		}
		if err := p.rows(p, h.Rows, func(i int) { addTo(h.Row(i), y.Row(i)) }); err != nil {
			return err
		}
	}
	return nil
}

// finite returns an error if a hidden state is NaN or infinite.
func (s *State) finite() error {
	at := slices.IndexFunc(s.Hidden.Data, func(v float32) bool { return v-v != 0 })
	if at < 0 {
		return nil
	}
	row, sequence := at/s.Hidden.Cols, 0
	for ; row >= len(s.Tokens[sequence]); sequence++ {
		row -= len(s.Tokens[sequence])
	}
	return fmt.Errorf("its results for sequence %d are not finite: look for NaN, infinite or very large weights in it and before", sequence)
}
