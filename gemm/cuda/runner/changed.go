package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// changed holds a model's weights with new values for some linear layers. New values have the stored type if it
// represents all of them exactly, so that their products are as fast as the original ones.
type changed struct {
	own    Weights           // the model's own weights
	values map[string]tensor // new values, by weight
}

type tensor struct {
	dtype weights.DType
	data  []byte
}

func (c *changed) Tensor(ctx context.Context, name string) (weights.DType, []byte, error) {
	if t, ok := c.values[name]; ok {
		return t.dtype, t.data, nil
	}
	return c.own.Tensor(ctx, name)
}

// StoredWeights are weights whose stored bytes may be available.
type StoredWeights interface {
	forward.Weights
	// Stored returns a tensor's type and bytes. The bytes are nil for a tensor that is left out. If ok is false, call
	// Tensor for the values.
	Stored(ctx context.Context, name string) (d weights.DType, data []byte, ok bool, err error)
}

// layer returns a layer's new values; nil if from leaves the layer out.
func (c *changed) layer(ctx context.Context, from forward.Weights, l decoder.Layer) (*tensor, error) {
	if stored, is := from.(StoredWeights); is {
		d, data, ok, err := stored.Stored(ctx, l.Tensor)
		switch {
		case err != nil || ok && data == nil:
			return nil, err
		case ok && len(data) != l.Inputs*l.Outputs*d.Bits()/8:
			return nil, fmt.Errorf("tensor %q: %d bytes of %s is not the size of %d values", l.Tensor, len(data), d, l.Inputs*l.Outputs)
		case ok:
			return &tensor{d, data}, nil
		}
	}
	values, err := from.Tensor(ctx, l.Tensor)
	if values == nil || err != nil {
		return nil, err
	}
	if len(values) != l.Inputs*l.Outputs {
		return nil, fmt.Errorf("tensor %q: %d values were given, but its shape has %d", l.Tensor, len(values), l.Inputs*l.Outputs)
	}
	d, err := c.dtype(ctx, l.Tensor)
	if err != nil {
		return nil, err
	}
	t := encoded(d, values)
	return &t, nil
}

// dtype returns the preferred type of a tensor's new values. For quantised weights, it does not compute the values.
func (c *changed) dtype(ctx context.Context, name string) (weights.DType, error) {
	if own, ok := c.own.(stored); ok {
		if computes, err := own.computes(name); computes || err != nil {
			return weights.BF16, err
		}
	}
	d, _, err := c.own.Tensor(ctx, name)
	return d, err
}

// encoded returns values in type d, or in F32 if d does not represent all of them exactly.
func encoded(d weights.DType, values []float32) tensor {
	format, ok := d.Format()
	if !ok {
		return tensor{weights.F32, bytesOf(values)}
	}
	const piece = 1 << 16
	pieces := (len(values) + piece - 1) / piece
	size := d.Bits() / 8
	data, exact := make([]byte, len(values)*size), make([]bool, pieces)
	parallel.Do(pieces, 0, func(i int) {
		from, to := i*piece, min((i+1)*piece, len(values))
		format.Encode(data[from*size:to*size], values[from:to])
		back := make([]float32, to-from)
		format.Decode(back, data[from*size:to*size])
		exact[i] = slices.Equal(back, values[from:to])
	})
	if slices.Contains(exact, false) {
		return tensor{weights.F32, bytesOf(values)}
	}
	return tensor{d, data}
}

// linears returns all linear layers of a block on the card.
func (b *block) linears() (all []*linear) {
	add := func(layers ...*linear) {
		all = append(all, slices.DeleteFunc(layers, func(l *linear) bool { return l == nil })...)
	}
	for _, s := range b.steps {
		for _, branch := range s {
			for _, p := range branch.parts {
				switch m := p.mixer.(type) {
				case *attention:
					add(m.in)
					if m.latent != nil {
						add(m.latent.down, m.latent.queriesUp, m.latent.kvUp)
					}
					add(m.out)
				case *ffn:
					add(m.in, m.out)
				case *experts:
					add(m.router)
					for _, f := range m.each {
						add(f.in, f.out)
					}
				}
			}
		}
	}
	return all
}

// replaced loads the new values of the layers in on into memory. These layers use the new values until restore is
// called. It must be called within Device.Do.
func (c *changed) replaced(ctx context.Context, m *Model, memory *cuda.Memory, on []*linear) (restore func(), err error) {
	l := m.loader(memory)
	l.source = c
	var before []linear
	restore = func() {
		for i, b := range before {
			*on[i] = b
		}
	}
	for _, one := range on {
		before = append(before, *one)
		if !slices.ContainsFunc(one.layers, func(l decoder.Linear) bool { _, ok := c.values[l.Weight]; return ok }) {
			continue
		}
		other, err := l.linear(ctx, one.layers...)
		if err != nil {
			restore()
			return nil, err
		}
		*one = *other
	}
	return restore, nil
}

// changedBlock runs block i like [Pass.block], but with the new values of its layers.
func (r *Pass) changedBlock(ctx context.Context, i int, c *changed) error {
	b, err := r.model.block(ctx, i)
	if err != nil {
		return err
	}
	if !r.model.Resident() {
		defer func() { _ = b.memory.Free() }() // a failure shows in the next allocation
	}
	memory := r.model.device.NewMemory()
	restore, err := c.replaced(ctx, r.model, memory, b.linears())
	if err == nil {
		err = r.through(ctx, i, b)
		restore()
	}
	if freed := memory.Free(); err == nil {
		err = freed
	}
	return err
}

// withHead runs f. If c has a new head, all batches use it meanwhile.
func (r *Pass) withHead(ctx context.Context, c *changed, f func() error) error {
	memory := r.model.device.NewMemory()
	other := *r.model // the reference keeps the model's own head
	head := *other.head
	other.head = &head
	if err := r.do(func() error {
		_, err := c.replaced(ctx, r.model, memory, []*linear{other.head})
		return err
	}); err != nil {
		_ = r.model.device.Release(memory.Free) // the first error is returned
		return err
	}
	for _, b := range r.batches {
		b.Model = &other
	}
	err := f()
	for _, b := range r.batches {
		b.Model = r.model
	}
	if freed := r.model.device.Release(memory.Free); err == nil {
		err = freed
	}
	return err
}

// Changed runs the tokens of a pass with different values of linear layers, and compares the predictions with those of
// the pass. It returns the divergence, as [Pass.Divergence] does, and the losses. Layers for which other returns nil do
// not change. Several goroutines call other for different layers at the same time, once per layer, roughly in the order
// of decoder.Layers.
func (r *Pass) Changed(ctx context.Context, other forward.Weights) (divergence float64, scores *forward.Scores, err error) {
	if err := r.open(); err != nil {
		return 0, nil, err
	}
	to, err := r.model.begin(r.tokens)
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if closed := to.Close(); err == nil {
			err = closed
		}
	}()
	c := &changed{own: r.model.source, values: map[string]tensor{}}
	layers, next := r.model.decoder.Layers(), 0
	runTo := func(block int) error { // runs the blocks from next to block-1; only the first of them has changed layers
		for ; next < block; next++ {
			if err := to.do(func() error { return to.changedBlock(ctx, next, c) }); err != nil {
				return err
			}
			clear(c.values)
		}
		return nil
	}
	err = ahead(ctx, len(layers), aheadOf, func(ctx context.Context, i int) (*tensor, error) {
		return c.layer(ctx, other, layers[i])
	}, func(i int, t *tensor) error {
		if err := runTo(layers[i].Block); err != nil {
			return err
		}
		if t != nil {
			c.values[layers[i].Tensor] = *t
		}
		return nil
	})
	if err == nil {
		err = runTo(len(r.model.decoder.Blocks))
	}
	if err != nil {
		return 0, nil, err
	}
	err = to.withHead(ctx, c, func() (err error) {
		if divergence, err = to.Divergence(ctx, r); err == nil {
			err = to.do(func() error { return to.score(ctx) })
		}
		return err
	})
	return divergence, to.Scores, err
}

// PerLayer changes the linear layers one at a time. It calls done with each layer's divergence from the pass, in the
// order of decoder.Layers. Layers for which other returns nil are skipped. Every layer starts from the stored residual
// stream before its block. Several goroutines call other for different layers at the same time. An error of done ends
// PerLayer.
func (r *Pass) PerLayer(ctx context.Context, other forward.Weights, done func(layer string, nats float64) error) (err error) {
	if err := r.open(); err != nil {
		return err
	}
	var passes [2]*Pass // before the layer's block, and after it
	for i := range passes {
		if passes[i], err = r.model.begin(r.tokens); err != nil {
			return err
		}
		defer func() {
			if closed := passes[i].Close(); err == nil {
				err = closed
			}
		}()
	}
	before, behind := passes[0], passes[1]
	next := 0 // block of before
	c := &changed{own: r.model.source}
	layers := r.model.decoder.Layers()
	return ahead(ctx, len(layers), aheadOf, func(ctx context.Context, i int) (*tensor, error) {
		return c.layer(ctx, other, layers[i])
	}, func(i int, t *tensor) error {
		if t == nil {
			return nil
		}
		layer := layers[i]
		c.values = map[string]tensor{layer.Tensor: *t}
		for ; next < layer.Block; next++ {
			if err := before.do(func() error { return before.block(ctx, next) }); err != nil {
				return err
			}
		}
		nats, err := behind.after(ctx, before, layer, c, r)
		if err != nil {
			return fmt.Errorf("with new values of %s: %w", layer.Tensor, err)
		}
		return done(layer.Tensor, nats)
	})
}

// after runs the model from the state before a layer's block, with new values for that layer, and returns the
// divergence from the reference.
func (r *Pass) after(ctx context.Context, before *Pass, layer decoder.Layer, c *changed, reference *Pass) (nats float64, err error) {
	blocks := len(r.model.decoder.Blocks)
	err = r.do(func() error {
		for i, b := range before.batches {
			if err := r.model.device.CopyWithin(r.batches[i].h, b.h, b.bytes()); err != nil {
				return err
			}
		}
		for i := layer.Block; i < blocks; i++ {
			run := func() error { return r.block(ctx, i) }
			if i == layer.Block {
				run = func() error { return r.changedBlock(ctx, i, c) }
			}
			if err := run(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if layer.Block < blocks {
		return r.Divergence(ctx, reference)
	}
	err = r.withHead(ctx, c, func() (err error) { nats, err = r.Divergence(ctx, reference); return err })
	return nats, err
}

// Version returns a digest of the kernels' sources.
func Version() string {
	h := sha256.Sum256([]byte(source() + gramSource))
	return hex.EncodeToString(h[:4])
}
