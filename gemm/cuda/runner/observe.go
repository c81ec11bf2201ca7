package runner

import (
	"context"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// Observation selects which statistics of inputs a pass collects.
type Observation struct {
	// Wanted reports whether the statistics of an input are wanted. layers are the names of the weights whose layers
	// read the input. Default: all inputs.
	Wanted func(layers []string) bool
	// Each is called with the statistics of an input after the last batch of its block. An error ends the pass.
	Each func(Gram) error
	// Blocks is the number of blocks to run. The head counts as a block. Default 0: all.
	Blocks int
	// Room limits the card's memory for the sums of a block's inputs, in bytes. The sums of a single input may exceed
	// it. Default 0: half of the free memory.
	Room int64
}

// Observe is [Model.Pass] that also collects statistics of linear layers' inputs, block by block. It needs a model with
// Options.Exact. The result is nil if not all blocks are run.
//
// The sums of a block's inputs take 8 bytes per element on the card. If the card has too little memory for all sums,
// the block runs again for the remaining inputs.
func (m *Model) Observe(ctx context.Context, tokens [][]int32, o Observation, step func(done, total int) error) (*Pass, error) {
	if step == nil {
		step = func(int, int) error { return nil }
	}
	k, err := m.gramKernels(ctx)
	if err != nil {
		return nil, err
	}
	r, err := m.begin(tokens)
	if err != nil {
		return nil, err
	}
	total := len(m.decoder.Blocks) + 1
	if o.Blocks > 0 {
		total = min(total, o.Blocks)
	}
	for i := 0; err == nil && i < total; i++ {
		if i < len(m.decoder.Blocks) {
			err = r.observeBlock(ctx, k, i, o)
		} else {
			err = r.observeHead(ctx, k, o)
		}
		if err == nil {
			err = step(i+1, total)
		}
	}
	if err != nil || r.Scores == nil {
		_ = r.Close() // the first error is returned
		return nil, err
	}
	return r, nil
}

// wanted returns the inputs of a block whose statistics are wanted. The head counts as a block.
func (r *Pass) wanted(i int, o Observation) (all []decoder.Input) {
	for _, in := range r.model.decoder.Inputs() {
		if in.Block == i && (o.Wanted == nil || o.Wanted(names(in))) {
			all = append(all, in)
		}
	}
	return all
}

// observeBlock runs all batches through a block, once for each set of inputs that fits into memory.
func (r *Pass) observeBlock(ctx context.Context, k *gramKernels, i int, o Observation) error {
	wanted := r.wanted(i, o)
	if len(wanted) == 0 {
		return r.do(func() error { return r.block(ctx, i) })
	}
	before := r.model.device.NewMemory()
	defer func() { _ = r.model.device.Release(before.Free) }() // a failure shows in the next allocation
	var kept []cuda.Address
	for len(wanted) > 0 {
		var set []decoder.Input
		if err := r.do(func() (err error) {
			if set, err = r.model.roomFor(wanted, o.Room); err != nil {
				return err
			}
			if len(set) < len(wanted) && kept == nil {
				kept, err = r.copyTo(before)
			}
			return err
		}); err != nil {
			return err
		}
		wanted = wanted[len(set):]
		if err := r.observeSet(k, set, o, func() error { return r.block(ctx, i) }); err != nil {
			return err
		}
		if len(wanted) > 0 {
			if err := r.do(func() error { return r.restore(kept) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// observeHead scores all tokens. The input of a tied head is not observed.
func (r *Pass) observeHead(ctx context.Context, k *gramKernels, o Observation) error {
	return r.observeSet(k, r.wanted(len(r.model.decoder.Blocks), o), o, func() error { return r.score(ctx) })
}

// observeSet collects the statistics of a set of inputs while f runs, and passes them to o.Each.
func (r *Pass) observeSet(k *gramKernels, set []decoder.Input, o Observation, f func() error) error {
	var g *grams
	if err := r.do(func() (err error) {
		if g, err = r.model.newGrams(k, set); err != nil {
			return err
		}
		r.grams = g
		defer func() { r.grams = nil }()
		return f()
	}); err != nil {
		if g != nil {
			_ = r.model.device.Release(g.memory.Free) // the first error is returned
		}
		return err
	}
	defer func() { _ = r.model.device.Release(g.memory.Free) }() // a failure shows in the next allocation
	for _, in := range set {
		var one *Gram
		if err := r.do(func() (err error) { one, err = g.of(r.batches[0].pass, in); return err }); err != nil {
			return err
		}
		if one == nil {
			continue // no token was routed to this expert
		}
		if err := o.Each(*one); err != nil {
			return err
		}
	}
	return nil
}

func (r *Pass) do(f func() error) error { return r.model.device.Do(f) }

// roomFor returns the first inputs whose sums fit into room bytes, but at least one input.
func (m *Model) roomFor(inputs []decoder.Input, room int64) ([]decoder.Input, error) {
	if room == 0 {
		free, err := m.device.Free()
		if err != nil {
			return nil, err
		}
		room = free / 2
	}
	n := slices.IndexFunc(inputs, func(in decoder.Input) bool {
		room -= sumBytes(in.Layers[0].Inputs)
		return room < 0
	})
	if n < 0 {
		return inputs, nil
	}
	return inputs[:max(1, n)], nil
}

// copyTo copies the residual stream of all batches to new memory.
func (r *Pass) copyTo(memory *cuda.Memory) (all []cuda.Address, err error) {
	for _, b := range r.batches {
		at, err := memory.Alloc(b.bytes())
		if err == nil {
			err = r.model.device.CopyWithin(at, b.h, b.bytes())
		}
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

// restore copies the residual stream of all batches back.
func (r *Pass) restore(from []cuda.Address) error {
	for i, b := range r.batches {
		if err := r.model.device.CopyWithin(b.h, from[i], b.bytes()); err != nil {
			return err
		}
	}
	return nil
}

// bytes returns the size of the batch's residual stream in bytes.
func (b batch) bytes() int { return b.rows * b.hidden * b.act.Bytes() }
