package forward

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Observer sees the inputs of linear layers.
type Observer interface {
	// Input is called with each input x[tokens, inputs], batch by batch in the order of the
	// sequences, once for all layers that share it: their weights' names. x is read only and valid
	// during the call. An error ends the pass.
	Input(names []string, x sgemm.Matrix) error
}

// step is half of a block: h += out(mix(in(norm(h)))).
type step struct {
	norm norm
	in   []linear
	mix  mixer
	out  linear
}

// mixer is what stands between the linear layers of a step.
type mixer interface {
	// widths are those of y and z.
	widths() (in, out int)
	// mix writes z from y, the outputs of the step's first layers side by side. It may overwrite y.
	mix(ctx context.Context, d *Decoder, z, y sgemm.Matrix, sequences [][]int32) error
}

// Block moves a state through block i, which must be its next. After an error the state is of no
// use. o may be nil.
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

// at fails unless block i is a state's next.
func (s *State) at(i int) error {
	if s.Next != i {
		return fmt.Errorf("a state whose next block is %d cannot go through block %d: take it there block by block", s.Next, i)
	}
	return nil
}

func (d *Decoder) step(ctx context.Context, p step, w Weights, s *State, o Observer) error {
	norm, err := p.norm.load(ctx, w)
	if err != nil {
		return err
	}
	in := make([]loaded, len(p.in))
	for i, l := range p.in {
		if in[i], err = l.load(ctx, w); err != nil {
			return err
		}
	}
	out, err := p.out.load(ctx, w)
	if err != nil {
		return err
	}
	rows := s.largestBatch()
	wide, mixed := p.mix.widths()
	xs, ys, zs := sgemm.Dense(rows, d.hidden, nil), sgemm.Dense(rows, wide, nil), sgemm.Dense(rows, mixed, nil)
	for b := range s.batches() {
		h := b.hidden(s)
		x, y, z := xs.Slice(0, b.rows, 0, d.hidden), ys.Slice(0, b.rows, 0, wide), zs.Slice(0, b.rows, 0, mixed)
		if err := d.normalize(ctx, norm, x, h); err != nil {
			return err
		}
		if err := observe(o, p.in, x); err != nil {
			return err
		}
		if err := d.applyAll(ctx, in, y, x); err != nil {
			return err
		}
		if err := p.mix.mix(ctx, d, z, y, b.sequences); err != nil {
			return err
		}
		if err := observe(o, []linear{p.out}, z); err != nil {
			return err
		}
		if err := d.apply(ctx, out, x, z); err != nil {
			return err
		}
		if err := d.rows(ctx, b.rows, func(i int) { addTo(h.Row(i), x.Row(i)) }); err != nil {
			return err
		}
	}
	return nil
}

func observe(o Observer, layers []linear, x sgemm.Matrix) error {
	if o == nil {
		return nil
	}
	return o.Input(weightNames(layers), x)
}

// finite fails where a hidden state is NaN or infinite.
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
