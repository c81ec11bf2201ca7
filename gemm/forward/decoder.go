package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ErrNoForward is wrapped in New's error for a family without a forward pass.
var ErrNoForward = decoder.ErrNoForward

// Layer is a linear layer and its place.
type Layer = decoder.Layer

// Decoder runs a model on the CPU. It has no weights. Several goroutines may use it on different states.
type Decoder struct {
	// Decoder describes the model. An Observer sees its Layers in their order.
	*decoder.Decoder
	// Workers is the number of goroutines that compute. Default 0: all processors.
	Workers int
	// Products multiplies by the linear layers. Default: the CPU, with Workers.
	Products Products
}

// New makes a decoder from a model's config.json and the layout of its tensors; see [decoder.New] for its errors.
func New(m *weights.Model, layout *arch.Layout) (*Decoder, error) {
	d, err := decoder.New(m, layout)
	if err != nil {
		return nil, err
	}
	return &Decoder{Decoder: d}, nil
}

// Vocabulary returns the size of the vocabulary. The loss of a uniform guess is its logarithm.
func (d *Decoder) Vocabulary() int { return d.Vocab }

// Blocks returns the number of blocks.
func (d *Decoder) Blocks() int { return len(d.Decoder.Blocks) }

// pass returns the state of a computation. o may be nil.
func (d *Decoder) pass(ctx context.Context, o Observer) *pass {
	p := &pass{Context: ctx, workers: d.Workers, products: d.Products, observer: o}
	if p.products == nil {
		p.products = CPU{d.Workers}
	}
	return p
}
