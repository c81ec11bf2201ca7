package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// Options are the options of [New].
type Options struct {
	// Exact computes with float32 activations; see the package's documentation. Default: activations have the type of
	// the weights, as in common runtimes.
	Exact bool
	// Longest is the longest sequence in tokens, at most the model's limit. Default 0: 4096, or the model's limit.
	Longest int
	// Resident makes New fail if some weights do not fit on the card. Default: blocks that do not fit are loaded for
	// each pass.
	Resident bool
}

// defaultLongest is the default of Options.Longest.
const defaultLongest = 4096

// Model is a decoder on a card. Only one method of a model, its passes and its steps may run at a time, except for
// Start and Wait of a step. Close frees the memory.
type Model struct {
	device  *cuda.Device
	decoder *decoder.Decoder
	source  Weights
	kernels *kernels
	fast    map[int]*fast // attention by head size
	gram    *gramKernels  // nil: not compiled yet
	act     cuda.Element  // type of activations
	exact   bool
	hidden  int
	longest int

	memory    *cuda.Memory
	turns     *turns
	embedding cuda.Address
	positions cuda.Address // 0: no table of positions
	entry     norm
	final     norm
	head      *linear
	blocks    []*block // nil for a block that is loaded for every pass
	scratch   *scratch
	products  map[cuda.LinearShape]*cuda.Linear
}

// New compiles the kernels and loads a model's weights. It returns a [cuda.ErrNoCompiler] without NVRTC. It returns a
// [cuda.ErrOutOfMemory] if Resident is set and the weights do not fit on the card, or if a single block does not fit.
func New(ctx context.Context, device *cuda.Device, d *decoder.Decoder, w Weights, o Options) (*Model, error) {
	if device == nil {
		return nil, cuda.ErrNoGPU
	}
	if d == nil || w == nil {
		return nil, errors.New("a model on the GPU needs a decoder and weights")
	}
	longest := o.Longest
	if longest == 0 {
		longest = min(d.Limit, defaultLongest)
	}
	if longest < 1 {
		return nil, fmt.Errorf("sequences of %d tokens: give at least 1", longest)
	}
	if longest > d.Limit {
		return nil, fmt.Errorf("sequences of %d tokens: the model's limit is %d tokens", longest, d.Limit)
	}
	m := &Model{
		device: device, decoder: d, source: w, exact: o.Exact, hidden: d.Hidden, longest: longest,
		memory: device.NewMemory(), scratch: newScratch(device), products: map[cuda.LinearShape]*cuda.Linear{},
	}
	err := m.chooseElement(ctx)
	if err == nil {
		shared, experts := m.needs()
		m.kernels, err = compile(ctx, device, m.act, shared, experts)
	}
	if err == nil {
		err = m.compileFast(ctx)
	}
	if err == nil {
		err = device.Do(func() error { return m.load(ctx, o.Resident) })
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// chooseElement sets the type of activations: float32 if Options.Exact is set, else the type of the embedding.
func (m *Model) chooseElement(ctx context.Context) error {
	m.act = cuda.FP32
	if m.exact {
		return nil
	}
	t, _, err := m.source.Tensor(ctx, m.decoder.Embedding.Tokens)
	if err != nil {
		return err
	}
	e, ok := elements[t]
	if !ok {
		return fmt.Errorf("tensor %q: the GPU runner does not support type %s: store the tensor as BF16, F16 or F32", m.decoder.Embedding.Tokens, t)
	}
	m.act = e
	return nil
}

// needs returns the largest dynamic shared memory of an attention in bytes, and the largest number of experts of a
// layer. Attention with the fast kernels is left out: heads of 256 channels would need more than the 99 KiB of many
// cards.
func (m *Model) needs() (shared, experts int) {
	for p := range parts(m.decoder) {
		if a := p.Attention; a != nil && !(m.fits(a) && a.Queries/a.KV <= maxGroup) {
			shared = max(shared, attendShared(a.Size, a.ValueSize))
		}
		if p.Experts != nil {
			experts = max(experts, len(p.Experts.Each))
		}
	}
	return shared, experts
}

// loader returns a loader that allocates in memory.
func (m *Model) loader(memory *cuda.Memory) *loader {
	return &loader{device: m.device, memory: memory, source: m.source, act: m.act, upload: m.device.Upload}
}

func (m *Model) load(ctx context.Context, resident bool) error {
	l := m.loader(m.memory)
	m.turns = newTurns(m.decoder, m.memory)
	m.turns.positions = m.longest
	e := m.decoder.Embedding
	var err error
	if m.embedding, err = l.table(ctx, e.Tokens, m.decoder.Vocab*m.hidden); err != nil {
		return err
	}
	if e.Positions != "" {
		if m.positions, err = l.table(ctx, e.Positions, e.PositionRows*m.hidden); err != nil {
			return err
		}
	}
	if m.entry, err = l.norm(ctx, e.Norm); err != nil {
		return err
	}
	if m.final, err = l.norm(ctx, m.decoder.Head.Norm); err != nil {
		return err
	}
	if err := m.loadHead(ctx, l); err != nil {
		return err
	}
	fits, err := m.roomForAll(ctx, l)
	if err != nil || !fits && !resident {
		return err
	}
	for i := range m.decoder.Blocks {
		b, err := m.loadBlock(ctx, i)
		if err != nil {
			return err
		}
		m.blocks = append(m.blocks, b)
	}
	return nil
}

// loadHead loads the head. A tied head shares the embedding's memory if products support the embedding's element type.
func (m *Model) loadHead(ctx context.Context, l *loader) error {
	h := m.decoder.Head
	if h.Tied && !h.Linear.Transposed {
		d, _, err := l.source.Tensor(ctx, h.Linear.Weight)
		if err != nil {
			return err
		}
		if l.stored(d) == m.act {
			m.head = &linear{inputs: h.Linear.Inputs, outputs: h.Linear.Outputs, layers: []decoder.Linear{h.Linear},
				groups: []weight{{at: m.embedding, element: m.act, outputs: h.Linear.Outputs}}}
			return nil
		}
	}
	var err error
	m.head, err = l.linear(ctx, h.Linear)
	return err
}

// table uploads an embedding in the element type of the activations.
func (l *loader) table(ctx context.Context, name string, n int) (cuda.Address, error) {
	d, data, err := l.tensor(ctx, name, n)
	if err != nil {
		return 0, err
	}
	at, err := l.memory.Alloc(n * l.act.Bytes())
	if err == nil {
		err = l.matrix(ctx, at, d, data, n, l.act)
	}
	if err != nil {
		return 0, fmt.Errorf("tensor %q: %w", name, err)
	}
	return at, nil
}

// roomForAll reports whether all blocks fit into two thirds of the free memory. The rest is for activations.
func (m *Model) roomForAll(ctx context.Context, l *loader) (bool, error) {
	free, err := m.device.Free()
	if err != nil {
		return false, err
	}
	var bytes int64
	for _, layer := range m.decoder.Layers() {
		if layer.Block == len(m.decoder.Blocks) {
			continue // the head is already on the card
		}
		d, _, err := m.source.Tensor(ctx, layer.Tensor)
		if err != nil {
			return false, err
		}
		bytes += int64(layer.Inputs) * int64(layer.Outputs) * int64(l.stored(d).Bytes())
	}
	return bytes <= free/3*2, nil
}

// Resident reports whether all weights are on the card.
func (m *Model) Resident() bool { return len(m.blocks) == len(m.decoder.Blocks) }

// Rotate moves the weights of each model to the memory of the next one, and the weights of the last model to the memory
// of the first. The models must have the same shapes and types, their weights must be on the card, and their steps must
// not be running. A captured step then computes with the weights that are in its model's memory. If ctx ends or the
// card fails, the weights are undefined.
func Rotate(ctx context.Context, models ...*Model) error {
	for _, m := range models {
		switch first := models[0]; {
		case m.kernels == nil:
			return errClosed
		case !m.Resident():
			return errors.New("the weights do not fit on the card, so they cannot be exchanged")
		case !m.alike(first) || len(m.blocks) != len(first.blocks):
			return errors.New("the models differ in shapes, type or card, so their weights cannot be exchanged")
		}
	}
	if len(models) < 2 {
		return nil
	}
	d := models[0].device
	rotate := func(of func(m *Model) *cuda.Memory) error {
		var all []*cuda.Memory
		for _, m := range models {
			all = append(all, of(m))
		}
		return d.Rotate(ctx, all...)
	}
	return d.Do(func() error {
		err := rotate(func(m *Model) *cuda.Memory { return m.memory })
		for i := range models[0].blocks {
			if err == nil {
				err = rotate(func(m *Model) *cuda.Memory { return m.blocks[i].memory })
			}
		}
		return err
	})
}

// errClosed is the error of methods of a closed model.
var errClosed = errors.New("the model was closed")

// Close frees the memory and the kernels. Steps must be closed first. The device stays open. Close is idempotent.
func (m *Model) Close() error {
	for _, l := range m.products {
		l.Close()
	}
	clear(m.products)
	errs := []error{m.device.Release(func() error {
		errs := []error{m.memory.Free(), m.scratch.free()}
		for _, b := range m.blocks {
			errs = append(errs, b.memory.Free())
		}
		return errors.Join(errs...)
	})}
	m.blocks = nil
	if m.kernels != nil {
		errs = append(errs, m.kernels.module.Close())
		m.kernels = nil
	}
	if m.gram != nil {
		errs = append(errs, m.gram.module.Close())
		m.gram = nil
	}
	for _, f := range m.fast {
		errs = append(errs, f.module.Close())
	}
	m.fast = nil
	return errors.Join(errs...)
}

// parts yields all parts of a decoder.
func parts(d *decoder.Decoder) func(yield func(decoder.Part) bool) {
	return func(yield func(decoder.Part) bool) {
		for _, b := range d.Blocks {
			for _, s := range b {
				for _, branch := range s {
					if !slices.ContainsFunc(branch.Parts, func(p decoder.Part) bool { return !yield(p) }) {
						continue
					}
					return
				}
			}
		}
	}
}
