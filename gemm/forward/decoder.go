package forward

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ErrNoForward is wrapped by New's error for a family that has no forward pass.
var ErrNoForward = errors.New("no forward pass")

// Decoder is a model's arithmetic: which layers there are and what they do, without weights. It may
// be used from several goroutines on different states.
type Decoder struct {
	// Workers is the number of goroutines that compute. Default 0: all processors.
	Workers int
	// Products multiplies by linear layers. Default: the CPU, with Workers.
	Products Products

	hidden, vocab int
	limit         int // longest sequence
	embedding     string
	positions     string // learned positions; empty where rotary
	positionRows  int    // how many of them there are
	blocks        [][]step
	final         norm
	head          linear
	tied          bool // the head is the embedding
}

// New makes a decoder from a model's config.json and the layout of its tensors. It fails, with
// ErrNoForward, for a family that is not computed, and where config.json or a tensor asks for
// something that is not.
func New(m *weights.Model, layout *arch.Layout) (*Decoder, error) {
	f, ok := families[layout.Family]
	if !ok {
		return nil, fmt.Errorf("family %s: there is %w for it, so its loss cannot be computed: a budget by --min-snr needs none", layout.Family, ErrNoForward)
	}
	if n := len(layout.Unclaimed); n > 0 {
		return nil, fmt.Errorf("tensor %q (%d such in all) is no part of family %s, so what it does to the loss is not known: take it out of the checkpoint", layout.Unclaimed[0], n, layout.Family)
	}
	b := newBuilder(f, readConfig(m.Config), layout)
	d := b.decoder()
	if err := errors.Join(b.config.err, b.err); err != nil {
		return nil, err
	}
	return d, nil
}

// Blocks is the number of blocks.
func (d *Decoder) Blocks() int { return len(d.blocks) }

// Layer is a linear layer.
type Layer struct {
	Tensor          string // its weight's name
	Block           int    // the block it is in; Blocks() for the head
	Inputs, Outputs int
}

// Layers lists the linear layers in the order in which they are computed: those that an Observer
// sees. A head that is the embedding is not among them.
func (d *Decoder) Layers() []Layer {
	var all []Layer
	add := func(block int, l linear) { all = append(all, Layer{l.weight, block, l.inputs, l.outputs}) }
	for i, steps := range d.blocks {
		for _, s := range steps {
			for _, l := range s.in {
				add(i, l)
			}
			add(i, s.out)
		}
	}
	if !d.tied {
		add(len(d.blocks), d.head)
	}
	return all
}

// Run computes the loss of every token: Start, every Block, and Score.
func (d *Decoder) Run(ctx context.Context, w Weights, tokens [][]int32, o Observer) (*Scores, error) {
	s, err := d.Start(ctx, w, tokens)
	if err != nil {
		return nil, err
	}
	for i := range d.blocks {
		if err := d.Block(ctx, i, w, s, o); err != nil {
			return nil, err
		}
	}
	return d.Score(ctx, w, s, o)
}
