package forward

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Block moves a state through block i, which must be the state's next block. After an error the state is unusable. o
// may be nil.
func (d *Decoder) Block(ctx context.Context, i int, w Weights, s *State, o Observer) error {
	if i >= d.Blocks() {
		return fmt.Errorf("there is no block %d: the model has %d blocks, counted from 0; after the last block, call Score", i, d.Blocks())
	}
	if err := s.at(i); err != nil {
		return err
	}
	if err := d.steps(ctx, len(d.Decoder.Blocks[i]), w, s, o); err != nil {
		return err
	}
	s.Next, s.Step = s.Next+1, 0
	if err := s.finite(); err != nil {
		return fmt.Errorf("block %d: %w", i, err)
	}
	return nil
}

// Before moves a state to the step that contains a layer. Layers of one step read the same state. It returns an error
// if the state is already past this step. After an error the state is unusable.
func (d *Decoder) Before(ctx context.Context, l Layer, w Weights, s *State) error {
	for s.Next < l.Block {
		if err := d.Block(ctx, s.Next, w, s, nil); err != nil {
			return err
		}
	}
	if err := s.at(l.Block); err != nil {
		return err
	}
	if s.Step > l.Step {
		return fmt.Errorf("block %d: the state is before step %d and cannot go back to step %d, which contains %s: start from an earlier state", l.Block, s.Step, l.Step, l.Tensor)
	}
	return d.steps(ctx, l.Step, w, s, nil)
}

// steps moves a state through the steps of its next block, up to but not including the step to.
func (d *Decoder) steps(ctx context.Context, to int, w Weights, s *State, o Observer) error {
	for ; s.Step < to; s.Step++ {
		if err := d.step(ctx, d.Decoder.Blocks[s.Next][s.Step], w, s, o); err != nil {
			return fmt.Errorf("block %d: %w", s.Next, err)
		}
	}
	return nil
}

// at returns an error unless block i is the state's next block.
func (s *State) at(i int) error {
	if s.Next != i {
		return fmt.Errorf("the state's next block is %d, so block %d cannot run now: run the blocks in order", s.Next, i)
	}
	return nil
}

func (d *Decoder) step(ctx context.Context, step decoder.Step, w Weights, s *State, o Observer) error {
	if hasExperts(step) {
		return d.expertStep(ctx, step, w, s, o)
	}
	rows := s.largestBatch()
	branches := make([]branch, len(step))
	for i, b := range step {
		var err error
		if branches[i], err = loadBranch(ctx, w, b, sgemm.Dense(rows, d.Hidden, nil)); err != nil {
			return err
		}
	}
	ys := sgemm.Dense(rows, d.Hidden, nil)
	p := d.pass(ctx, o)
	for b := range s.batches() {
		p.sequences = b.sequences
		h, y := b.hidden(s), ys.Slice(0, b.rows, 0, d.Hidden)
		for _, l := range branches { // compute all branches before adding any
			if err := l.norm.apply(p, l.x.Slice(0, b.rows, 0, d.Hidden), h); err != nil {
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
	return fmt.Errorf("the results for sequence %d are not finite: look for NaN, infinite or very large weights in this block and in earlier blocks", sequence)
}
