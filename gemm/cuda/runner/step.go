package runner

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// Work describes a step of a server, which is a prefill or a decode step.
type Work struct {
	Sequences int // number of sequences in the batch
	// Context is the number of tokens of each sequence, including the tokens of the step. A prefill computes all of
	// them, a decode step only the last.
	Context int
	Decode  bool
	// Seed is the seed of the random tokens. Default 0.
	Seed uint64
	// Linear runs only the linear layers. Their inputs are the current contents of the buffers.
	Linear bool
}

// Tokens returns the number of tokens that a step computes.
func (w Work) Tokens() int {
	if w.Decode {
		return w.Sequences
	}
	return w.Sequences * w.Context
}

// shares reports whether steps of w and other can share buffers.
func (w Work) shares(other Work) bool {
	other.Linear = w.Linear
	return w == other
}

// String describes the work in a few words.
func (w Work) String() string {
	if w.Decode {
		return fmt.Sprintf("decode, batch %d, context %d", w.Sequences, w.Context)
	}
	return fmt.Sprintf("prefill, %d × %d tokens", w.Sequences, w.Context)
}

// Step is a step of a model, captured in a CUDA graph: embedding, blocks, head and the choice of the next token. Every
// replay computes the same step. A Step is a load for package power.
type Step struct {
	*cuda.Graph
	model  *Model
	work   Work
	memory *cuda.Memory
	// scratch belongs to the step alone, because buffers of a graph must not move.
	scratch *scratch
	pass    *pass
	h       cuda.Address
	last    cuda.Address // last row of each sequence
	next    cuda.Address // next token of each sequence
	warm    bool         // whether all kernels have run
}

// NewStep prepares a step of random tokens. The weights must be on the card (Options.Resident). A decode step has a KV
// cache with the keys and values of its sequences. Replays compute the routers, but send every token to the experts
// that the first run chose. If ctx ends, NewStep stops between two blocks.
//
// like may be a step of the same work of a model with the same shapes, or nil. With like, the new step runs the same
// kernels in like's buffers, with like's choices of experts and like's KV cache. It writes only the last token's keys
// and values to the cache. Close the new step before like.
func (m *Model) NewStep(ctx context.Context, name string, w Work, like *Step) (*Step, error) {
	switch {
	case m.kernels == nil:
		return nil, fmt.Errorf("%s: %w", name, errClosed)
	case w.Sequences < 1 || w.Context < 1 || w.Context > m.longest:
		return nil, fmt.Errorf("%s: %v: the model was loaded for sequences of 1 to %d tokens", name, w, m.longest)
	case !m.Resident():
		return nil, fmt.Errorf("%s: the weights do not fit on the card, but a step needs all of them there: use a smaller model or a card with more memory", name)
	case w.Sequences > maxSequences:
		return nil, fmt.Errorf("%s: %v: a step can have at most %d sequences", name, w, maxSequences)
	case like != nil && !like.work.shares(w):
		return nil, fmt.Errorf("%s: %v cannot use the buffers of %v: the batch, the context and the phase must be equal", name, w, like.work)
	case like != nil && !m.alike(like.model):
		return nil, fmt.Errorf("%s: the two models differ in shapes, type or card, so their steps cannot share buffers", name)
	case like == nil && w.Linear:
		return nil, fmt.Errorf("%s: a step with only linear layers needs another step, whose buffers it reads", name)
	}
	s := &Step{model: m, work: w, memory: m.device.NewMemory(), scratch: newScratch(m.device)}
	if err := m.device.Do(func() error { return s.setUp(ctx, name, like) }); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), s.Close())
	}
	return s, nil
}

// maxSequences is CUDA's limit of a grid's third dimension, which counts the sequences in attention.
const maxSequences = 65535

// alike reports whether steps of m and other can share buffers and a cache, because all sizes are equal.
func (m *Model) alike(other *Model) bool {
	sizes := func(m *Model) (all []any) {
		all = append(all, m.device, m.act, m.hidden, m.decoder.Vocab)
		for p := range parts(m.decoder) {
			switch {
			case p.Attention != nil:
				all = append(all, p.Attention.Heads)
			case p.FFN != nil:
				all = append(all, p.FFN.Neurons(), p.FFN.Gated)
			case p.Experts != nil:
				all = append(all, len(p.Experts.Each), p.Experts.Each[0].Neurons(), p.Experts.Routing.Used)
			}
		}
		return all
	}
	return slices.Equal(sizes(m), sizes(other))
}

// Kernels returns the kernels of the step's products, one for each shape.
func (s *Step) Kernels() []cuda.Kernel {
	var all []cuda.Kernel
	for l := range s.pass.launched {
		all = append(all, l.Kernel())
	}
	slices.SortFunc(all, func(a, b cuda.Kernel) int {
		return cmp.Or(cmp.Compare(a.M, b.M), cmp.Compare(a.N, b.N), cmp.Compare(a.K, b.K), cmp.Compare(a.Algorithm, b.Algorithm))
	})
	return all
}

// Work returns the step's description.
func (s *Step) Work() Work { return s.work }

// Close ends running replays and frees the memory. It is idempotent.
func (s *Step) Close() error {
	var err error
	if s.Graph != nil {
		err = s.Graph.Close()
	}
	return errors.Join(err, s.model.device.Release(func() error { return errors.Join(s.memory.Free(), s.scratch.free()) }))
}

// sequences draws the random tokens of a batch.
func (s *Step) sequences() [][]int32 {
	r := rand.New(rand.NewPCG(s.work.Seed, 1))
	all := make([][]int32, s.work.Sequences)
	for i := range all {
		all[i] = make([]int32, s.work.Context)
		for j := range all[i] {
			all[i][j] = int32(r.IntN(s.model.decoder.Vocab))
		}
	}
	return all
}

func (s *Step) setUp(ctx context.Context, name string, like *Step) error {
	m, w := s.model, s.work
	all := s.sequences()
	var kept *cache
	var err error
	if like != nil {
		kept = like.pass.cache
	} else if kept, err = m.newCache(s.memory, w.Sequences, w.Context); err != nil {
		return fmt.Errorf("KV cache of %d × %d tokens: %w", w.Sequences, w.Context, err)
	}
	if w.Decode {
		if like == nil {
			if err := s.fill(ctx, all, kept); err != nil {
				return err
			}
		}
		if err := s.decode(all); err != nil {
			return err
		}
	} else {
		b, err := m.batch(s.memory, all, w.Tokens())
		if err != nil {
			return err
		}
		s.pass, s.h = b.pass, b.h
	}
	s.pass.cache = kept
	s.pass.scratch = s.scratch
	if like != nil {
		s.pass.scratch, s.pass.products, s.pass.routes = like.pass.scratch, like.pass.products, like.pass.routes
	} else {
		s.pass.routes = &routes{memory: s.memory}
	}
	if w.Linear {
		s.h = like.h
	}
	if err := s.ends(); err != nil {
		return err
	}
	s.pass.launched = map[*cuda.Linear]bool{}
	queue := s.queue
	if w.Linear {
		queue = s.queueLinear
	}
	if s.Graph, err = m.device.NewGraph(name, func() error { err := queue(ctx); s.warm = true; return err }); err != nil {
		return err
	}
	s.pass.scratch.fixed = true
	if w.Linear {
		return nil
	}
	return s.finite()
}

// finite returns an error if a sequence has no next token, because its logits are NaN. The energy of such a step is not
// representative.
func (s *Step) finite() error {
	next, err := s.tokens()
	if at := slices.IndexFunc(next, func(t int32) bool { return t < 0 || int(t) >= s.model.decoder.Vocab }); err == nil && at >= 0 {
		return fmt.Errorf("the logits of sequence %d are not finite in %v: look for infinite, NaN or very large weights", at, s.model.act)
	}
	return err
}

// fill computes the cache of all tokens, in batches. It frees its large buffers at the end.
func (s *Step) fill(ctx context.Context, all [][]int32, kept *cache) (err error) {
	m := s.model
	buffers := newScratch(m.device)
	defer func() { err = errors.Join(err, buffers.free()) }()
	each := max(1, batchTokens/s.work.Context)
	for from := 0; from < len(all); from += each {
		memory := m.device.NewMemory()
		part := all[from:min(len(all), from+each)]
		b, err := m.batch(memory, part, len(part)*s.work.Context)
		if err == nil {
			b.scratch = buffers
			err = s.prefill(ctx, b, kept.from(m, from))
		}
		if err := errors.Join(err, m.device.Synchronize(), memory.Free()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) prefill(ctx context.Context, b batch, kept *cache) error {
	b.cache = kept
	if err := b.embed(); err != nil {
		return err
	}
	for _, block := range b.blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := block.run(b.pass, b.h); err != nil {
			return err
		}
		if err := b.device.Synchronize(); err != nil { // otherwise all blocks would be queued before ctx is checked
			return err
		}
	}
	return nil
}

// decode uploads the last token of each sequence.
func (s *Step) decode(all [][]int32) error {
	m, n := s.model, s.work.Sequences
	p := &pass{Model: m, scratch: m.scratch, products: m.products, rows: n, sequences: n, longest: 1, step: true}
	var tokens, places, sequence, lengths []int32
	for i, t := range all {
		tokens, places = append(tokens, t[len(t)-1]), append(places, int32(len(t)-1))
		sequence, lengths = append(sequence, int32(i)), append(lengths, int32(len(t)))
	}
	l := m.loader(s.memory)
	for _, v := range []struct {
		to   *cuda.Address
		data []int32
	}{{&p.tokens, tokens}, {&p.places, places}, {&p.sequence, sequence}, {&p.lengths, lengths}} {
		var err error
		if *v.to, err = l.ints(v.data); err != nil {
			return err
		}
	}
	s.pass = p
	heads := 0
	for part := range parts(m.decoder) {
		if part.Attention != nil {
			heads = max(heads, part.Attention.KV)
		}
	}
	var err error
	if p.counters, err = l.ints(make([]int32, n*heads)); err != nil {
		return err
	}
	s.h, err = s.memory.Alloc(n * m.hidden * m.act.Bytes())
	return err
}

// ends uploads the index of each sequence's last row.
func (s *Step) ends() error {
	rows := make([]int32, s.work.Sequences)
	for i := range rows {
		rows[i] = int32((i+1)*(s.work.Tokens()/s.work.Sequences) - 1)
	}
	var err error
	if s.last, err = s.model.loader(s.memory).ints(rows); err != nil {
		return err
	}
	s.next, err = s.memory.Alloc(4 * len(rows))
	return err
}

// queue queues the step.
func (s *Step) queue(ctx context.Context) error {
	p, m, n := s.pass, s.model, s.work.Sequences
	p.routes.next = 0
	if err := (batch{pass: p, h: s.h}).embed(); err != nil {
		return err
	}
	for _, b := range m.blocks {
		if err := ctx.Err(); err != nil { // the first run is slow, because it measures the kernels of products
			return err
		}
		if err := b.run(p, s.h); err != nil {
			return err
		}
		if !s.warm { // otherwise all blocks would be queued before ctx is checked
			if err := m.device.Synchronize(); err != nil {
				return err
			}
		}
	}
	h, err := s.lastRows()
	if err != nil {
		return err
	}
	if h != s.h {
		if err := m.kernels.gather.Launch(cuda.Grid{X: n}, cuda.Grid{X: threads}, h, s.h, s.last, m.hidden); err != nil {
			return err
		}
	}
	logits, err := p.logits("logits", h, 0, n)
	if err != nil {
		return err
	}
	return m.kernels.argmax.Launch(cuda.Grid{X: n}, cuda.Grid{X: threads}, s.next, logits, m.decoder.Vocab)
}

// lastRows returns the address of the sequences' last rows: the residual stream in a decode step, else a buffer.
func (s *Step) lastRows() (cuda.Address, error) {
	if n := s.work.Sequences; s.pass.rows != n {
		return s.pass.buffer("ends", n*s.model.hidden*s.model.act.Bytes())
	}
	return s.h, nil
}

// queueLinear queues only the linear layers of the step. Each layer reads and writes the same buffers as in queue.
func (s *Step) queueLinear(ctx context.Context) error {
	p, n := s.pass, s.work.Sequences
	p.routes.next = 0
	for _, b := range p.blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, step := range b.steps {
			for i, branch := range step {
				x, err := p.input(step, i, s.h)
				if err != nil {
					return err
				}
				for _, part := range branch.parts {
					to, err := part.output(p, s.h)
					if err != nil {
						return err
					}
					if err := part.multiply(p, to, x); err != nil {
						return err
					}
				}
			}
		}
	}
	x, err := p.buffer("normed", n*p.hidden*p.act.Bytes())
	if err == nil && p.final.Missing() {
		x, err = s.lastRows()
	}
	if err != nil {
		return err
	}
	logits, err := p.buffer("logits", n*p.decoder.Vocab*4)
	if err != nil {
		return err
	}
	return p.apply(p.head, logits, x, n, p.hidden, p.decoder.Vocab, cuda.FP32, false)
}

// Next returns the most likely next token of each sequence, after a replay.
func (s *Step) Next() (tokens []int32, err error) {
	err = s.model.device.Do(func() (err error) { tokens, err = s.tokens(); return err })
	return tokens, err
}

// tokens downloads the next tokens. It must be called within Device.Do.
func (s *Step) tokens() ([]int32, error) {
	data := make([]byte, 4*s.work.Sequences)
	if err := s.model.device.Download(data, s.next); err != nil {
		return nil, err
	}
	tokens := make([]int32, s.work.Sequences)
	for i := range tokens {
		tokens[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return tokens, nil
}
