package runner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// batchTokens limits the tokens of a batch, unless a single sequence is longer.
const batchTokens = 8192

// Pass is the result of running tokens through all blocks: the residual stream after the last block and the losses.
// Close frees its memory.
type Pass struct {
	// Scores are the losses of all predicted tokens.
	Scores *forward.Scores

	model   *Model
	tokens  [][]int32
	memory  *cuda.Memory
	batches []batch
	grams   *grams // nil: statistics are not collected
}

// batch is a set of sequences with their residual stream on the card.
type batch struct {
	*pass
	first int // index of the first sequence
	h     cuda.Address
	chunk []int32 // tokens
}

// Pass runs sequences through the model and computes the loss of every token except the first of each sequence. step
// may be nil. It is called after each of total steps: the blocks and the head. If step returns an error or ctx ends,
// the pass ends between two blocks of a batch. Activations that are not finite are an error that names the first layer
// with such activations.
func (m *Model) Pass(ctx context.Context, tokens [][]int32, step func(done, total int) error) (*Pass, error) {
	if step == nil {
		step = func(int, int) error { return nil }
	}
	r, err := m.begin(tokens)
	if err != nil {
		return nil, err
	}
	total := len(m.decoder.Blocks) + 1
	for i := 0; err == nil && i < total-1; i++ {
		err = m.device.Do(func() error { return r.block(ctx, i) })
		if err == nil {
			err = step(i+1, total)
		}
	}
	if err == nil {
		err = m.device.Do(func() error { return r.score(ctx) })
	}
	if err == nil {
		err = step(total, total)
	}
	if err != nil {
		_ = r.Close() // the first error is returned
		return nil, err
	}
	return r, nil
}

// begin returns a pass before the first block.
func (m *Model) begin(tokens [][]int32) (*Pass, error) {
	if m.kernels == nil {
		return nil, errClosed
	}
	if err := m.decoder.Check(tokens); err != nil {
		return nil, err
	}
	for i, t := range tokens {
		if len(t) > m.longest {
			return nil, fmt.Errorf("sequence %d has %d tokens, but the model was loaded for at most %d: increase Options.Longest", i, len(t), m.longest)
		}
	}
	r := &Pass{model: m, tokens: tokens, memory: m.device.NewMemory()}
	if err := m.device.Do(r.start); err != nil {
		_ = r.Close() // the first error is returned
		return nil, err
	}
	return r, nil
}

// Close frees the memory. The Scores remain valid. Close is idempotent.
func (r *Pass) Close() error {
	r.batches = nil
	return r.model.device.Release(r.memory.Free)
}

// open returns an error if the pass or its model was closed.
func (r *Pass) open() error {
	switch {
	case r.model.kernels == nil:
		return errClosed
	case r.batches == nil:
		return errors.New("the pass was closed")
	}
	return nil
}

// start uploads the sequences and looks up their embeddings.
func (r *Pass) start() error {
	for from := 0; from < len(r.tokens); {
		to, rows := from+1, len(r.tokens[from])
		for ; to < len(r.tokens) && rows+len(r.tokens[to]) <= batchTokens; to++ {
			rows += len(r.tokens[to])
		}
		b, err := r.model.batch(r.memory, r.tokens[from:to], rows)
		if err != nil {
			return err
		}
		b.first = from
		if err := b.embed(); err != nil {
			return err
		}
		r.batches = append(r.batches, b)
		from = to
	}
	return nil
}

// batch uploads sequences with rows tokens in all.
func (m *Model) batch(memory *cuda.Memory, sequences [][]int32, rows int) (batch, error) {
	p := &pass{Model: m, scratch: m.scratch, products: m.products, rows: rows, sequences: len(sequences)}
	b := batch{pass: p}
	var places, sequence, lengths []int32
	starts := []int32{0}
	for i, t := range sequences {
		for at := range t {
			places, sequence, lengths = append(places, int32(at)), append(sequence, int32(i)), append(lengths, int32(len(t)))
		}
		b.chunk = append(b.chunk, t...)
		starts = append(starts, int32(len(b.chunk)))
		p.longest = max(p.longest, len(t))
	}
	l := m.loader(memory)
	for _, v := range []struct {
		to   *cuda.Address
		data []int32
	}{{&p.tokens, b.chunk}, {&p.places, places}, {&p.sequence, sequence}, {&p.lengths, lengths}, {&p.starts, starts}} {
		var err error
		if *v.to, err = l.ints(v.data); err != nil {
			return b, err
		}
	}
	var err error
	if b.h, err = memory.Alloc(rows * m.hidden * m.act.Bytes()); err != nil {
		err = fmt.Errorf("residual stream of %d tokens: %w", rows, err)
	}
	return b, err
}

// embed queues the embeddings of the tokens.
func (b batch) embed() error {
	e := b.decoder.Embedding
	err := b.kernels.embed.Launch(cuda.Grid{X: b.rows}, cuda.Grid{X: threads}, b.h, b.embedding, b.positions, b.tokens, b.places, b.hidden, e.Scale, e.Offset)
	if err != nil || b.entry.Missing() {
		return err
	}
	return b.normalize(b.entry, b.h, b.h, b.hidden, b.hidden, false, 1)
}

// block runs all batches through a block, and checks that every layer's outputs are finite.
func (r *Pass) block(ctx context.Context, i int) error {
	m := r.model
	b, err := m.block(ctx, i)
	if err != nil {
		return err
	}
	if !m.Resident() {
		defer func() { _ = b.memory.Free() }() // a failure shows in the next allocation
	}
	return r.through(ctx, i, b)
}

// through runs all batches through block i, which is on the card.
func (r *Pass) through(ctx context.Context, i int, b *block) error {
	flags, err := r.model.flags()
	if err != nil {
		return err
	}
	for _, batch := range r.batches {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch.flags, batch.names, batch.grams = flags, nil, r.grams
		if err := b.run(batch.pass, batch.h); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		if err := batch.look(); err != nil {
			return fmt.Errorf("block %d, sequences from %d on: %w", i, batch.first, err)
		}
	}
	return nil
}

// block returns block i, which it loads unless it is on the card.
func (m *Model) block(ctx context.Context, i int) (*block, error) {
	if m.Resident() {
		return m.blocks[i], nil
	}
	return m.loadBlock(ctx, i)
}

// flags returns memory for the flags, filled with zeros.
func (m *Model) flags() (cuda.Address, error) {
	p := &pass{Model: m, scratch: m.scratch}
	flags, err := p.buffer("flags", 4*maxNames)
	if err != nil {
		return 0, err
	}
	return flags, m.device.Clear(flags, 4*maxNames)
}

// look reads the flags. If any layer's outputs are not finite, it returns an error that names the first such layer.
func (p *pass) look() error {
	if len(p.names) == 0 {
		return nil
	}
	data := make([]byte, 4*len(p.names))
	if err := p.device.Download(data, p.flags); err != nil {
		return err
	}
	for i, name := range p.names {
		if binary.LittleEndian.Uint32(data[4*i:]) != 0 {
			return fmt.Errorf("tensor %q: the layer's outputs are not finite: look for NaN, infinite or very large weights in this layer and in earlier layers", name)
		}
	}
	return nil
}
