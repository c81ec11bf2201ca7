package forward

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ErrNoForward is wrapped in New's error for a family without a forward pass.
var ErrNoForward = errors.New("no forward pass")

// Decoder is a model's arithmetic: its layers and what they compute, without weights. Several goroutines may
// use it on different states.
type Decoder struct {
	// Workers is the number of goroutines that compute. Default 0: all processors.
	Workers int
	// Products multiplies by the linear layers. Default: the CPU, with Workers.
	Products Products

	hidden, vocab int
	limit         int // longest sequence
	embedding     string
	scale         float32 // of the embedding's rows
	positions     positions
	entry         norm // of what is embedded; missing in most models
	blocks        [][]step
	final         norm
	head          linear
	tied          bool // the head is the embedding
	logitScale    float32
	logitCap      float64 // logits are cap·tanh(logit/cap); 0: not
}

// positions are learned positions: rows of a table that are added to the tokens' embeddings.
type positions struct {
	table       string // empty where there are none
	rows, first int    // first is the row of position 0
}

// New makes a decoder from a model's config.json and the layout of its tensors. It fails with ErrNoForward for
// a family without a forward pass. It also fails if config.json or a tensor asks for something that this
// package does not compute.
func New(m *weights.Model, layout *arch.Layout) (*Decoder, error) {
	f, ok := families[layout.Family]
	if !ok {
		return nil, fmt.Errorf("family %s: there is %w for it, so its loss cannot be computed", layout.Family, ErrNoForward)
	}
	c := readConfig(m.Config)
	if names := unclaimed(f, c, layout); len(names) > 0 {
		return nil, fmt.Errorf("tensor %q (%d such in all) is no part of family %s, so what it does to the loss is not known: take it out of the checkpoint", names[0], len(names), layout.Family)
	}
	b := newBuilder(f, c, layout)
	d := b.decoder()
	if err := errors.Join(b.config.err, b.err); err != nil {
		return nil, err
	}
	return d, nil
}

// Vocabulary is the size of the vocabulary. A uniform guess has a loss of its logarithm.
func (d *Decoder) Vocabulary() int { return d.vocab }

// Blocks is the number of blocks.
func (d *Decoder) Blocks() int { return len(d.blocks) }

// Layer is a linear layer.
type Layer struct {
	Tensor          string // its weight's name
	Block           int    // the block it is in; Blocks() for the head
	Inputs, Outputs int
	// Routed is set for an expert's layer. It sees only the tokens that the router sends to the expert, which
	// may be none.
	Routed bool
}

// Layers lists the linear layers in the order in which they are computed, which is the order in which an
// Observer sees them. A head that is tied to the embedding is not in the list.
func (d *Decoder) Layers() []Layer {
	var all []Layer
	add := func(block int, l linear) { all = append(all, Layer{l.weight, block, l.inputs, l.outputs, l.routed}) }
	for i, steps := range d.blocks {
		for _, s := range steps {
			for _, l := range s.layers() {
				add(i, l)
			}
		}
	}
	if !d.tied {
		add(len(d.blocks), d.head)
	}
	return all
}

// Run computes the loss of every token: the scores of a Pass that keeps nothing. o may be nil.
func (d *Decoder) Run(ctx context.Context, w Weights, tokens [][]int32, o Observer) (*Scores, error) {
	r, err := d.Pass(ctx, w, tokens, PassOptions{Keep: Keep{Bytes: -1}, Observer: o})
	if err != nil {
		return nil, err
	}
	return r.Scores, nil
}
