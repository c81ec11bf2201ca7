package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ErrNoForward is wrapped in New's error for a family without a forward pass.
var ErrNoForward = decoder.ErrNoForward

// Layer is a linear layer and its position in the model.
type Layer = decoder.Layer

// Decoder runs a model on the CPU. It contains no weights. Several goroutines may use it with different states.
type Decoder struct {
	// Decoder describes the model. An Observer is called for its Layers in order.
	*decoder.Decoder
	// Workers is the number of computing goroutines. Default 0: one per processor.
	Workers int
	// Products multiplies by the weights of the linear layers. Default: the CPU, with Workers.
	Products Products
}

// New creates a decoder from a model's config.json and the layout of its tensors. Its errors are those of
// [decoder.New].
func New(m *weights.Model, layout *arch.Layout) (*Decoder, error) {
	d, err := decoder.New(m, layout)
	if err != nil {
		return nil, err
	}
	return &Decoder{Decoder: d}, nil
}

// Vocabulary returns the size of the vocabulary. The loss of a uniform guess is the natural logarithm of this size.
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
