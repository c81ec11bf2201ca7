package runner

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// pass is the state of some sequences on their way through the blocks. Its methods must be called within Device.Do.
type pass struct {
	*Model
	scratch *scratch
	// products are the descriptions of products by shape.
	products map[cuda.LinearShape]*cuda.Linear
	// launched holds every product that was launched; nil: they are not recorded.
	launched map[*cuda.Linear]bool

	rows, sequences, longest int
	// Addresses on the card: token, position, sequence and sequence length of each row, and the first row of each
	// sequence, followed by the number of rows.
	tokens, places, sequence, lengths, starts cuda.Address
	// cache holds keys and values; nil: they are not kept.
	cache *cache
	// step is true for a decode step: there is one row per sequence, and attention reads the cache.
	step bool
	// counters holds a zero for each sequence and KV head. Only a decode step has counters.
	counters cuda.Address
	// flags holds a word for each layer, in the order of names; 0: layers are not checked.
	flags cuda.Address
	names []string
	// routes are the choices of a captured step's routers; nil: the routers choose anew in every run.
	routes *routes
	// grams sums statistics of the layers' inputs; nil: none are collected.
	grams *grams
}

// scratch is a set of buffers by name. Buffers grow on demand, and every use overwrites them.
type scratch struct {
	device  *cuda.Device
	buffers map[string]*buffer
	// fixed is true once a graph contains the buffers' addresses. From then on, no buffer may grow.
	fixed bool
}

func newScratch(d *cuda.Device) *scratch { return &scratch{device: d, buffers: map[string]*buffer{}} }

type buffer struct {
	memory *cuda.Memory
	at     cuda.Address
	bytes  int
}

// buffer returns the address of a buffer of at least the given size in bytes. If the buffer grows, its contents are
// lost.
func (p *pass) buffer(name string, bytes int) (cuda.Address, error) {
	b := p.scratch.buffers[name]
	if b == nil {
		b = &buffer{memory: p.device.NewMemory()}
		p.scratch.buffers[name] = b
	}
	if b.bytes >= bytes {
		return b.at, nil
	}
	if p.scratch.fixed && b.bytes > 0 {
		return 0, fmt.Errorf("buffer %q must grow from %d to %d bytes, but the graph of another step contains its address: the layers of the two models differ in size or type", name, b.bytes, bytes)
	}
	if err := p.device.Synchronize(); err != nil {
		return 0, err
	}
	if err := b.memory.Free(); err != nil {
		return 0, err
	}
	b.bytes = 0
	at, err := b.memory.Alloc(bytes)
	if err != nil {
		return 0, fmt.Errorf("buffer for %d tokens: %w", p.rows, err)
	}
	b.at, b.bytes = at, bytes
	return at, nil
}

// rowsBuffer returns a buffer of activations for all rows.
func (p *pass) rowsBuffer(name string, width int) (cuda.Address, error) {
	return p.buffer(name, p.rows*width*p.act.Bytes())
}

func (s *scratch) free() error {
	var errs []error
	for _, b := range s.buffers {
		errs = append(errs, b.memory.Free())
	}
	clear(s.buffers)
	return errors.Join(errs...)
}

// finite queues a check of a layer's outputs.
func (p *pass) finite(l *linear, y cuda.Address, rows, stride int) error {
	if p.flags == 0 || stride != l.outputs || len(p.names) == maxNames {
		return nil
	}
	flag := p.flags.Plus(4 * len(p.names))
	p.names = append(p.names, l.layers[0].Weight)
	return p.kernels.check.Launch(flat(rows*stride), cuda.Grid{X: threads}, y, rows, stride, flag)
}

// maxNames is the largest number of layers that are checked before the flags are read.
const maxNames = 1 << 16

// layerError adds the name of the first of l's layers to an error.
func (p *pass) layerError(l *linear, err error) error {
	return fmt.Errorf("tensor %q: %w", l.layers[0].Weight, err)
}
