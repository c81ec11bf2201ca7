package runner

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// attention is attention on the card.
type attention struct {
	*decoder.Attention
	heads  decoder.Heads // positions of the heads in y; with latent attention, y is assembled head by head
	in     *linear       // nil if latent computes y
	latent *latent
	norms  []norm
	rotary *rotary      // nil: no rotary positions
	starts cuda.Address // the first column of every query, key and value head
	slopes cuda.Address
	out    *linear
	place  int // index of this attention in the model, which selects its cache
}

func (l *loader) attention(ctx context.Context, a *decoder.Attention, t *turns) (*attention, error) {
	on := &attention{Attention: a, heads: a.Heads, place: t.places[a]}
	if a.ValueSize > maxValueSize {
		return nil, fmt.Errorf("tensor %q: %w: its heads have %d value channels, but at most %d are supported", a.Out.Weight, cuda.ErrNoKernel, a.ValueSize, maxValueSize)
	}
	var err error
	if a.Latent != nil {
		on.latent, err = l.latent(ctx, a)
	} else {
		on.in, err = l.linear(ctx, a.In...)
	}
	if err != nil {
		return nil, err
	}
	for _, s := range a.Norms {
		n, err := l.span(ctx, s)
		if err != nil {
			return nil, err
		}
		on.norms = append(on.norms, n)
	}
	if on.starts, err = l.ints(startsOf(a.Heads)); err != nil {
		return nil, err
	}
	if a.Rotary != nil {
		if on.rotary, err = l.rotary(a, t); err != nil {
			return nil, err
		}
	}
	if a.ALiBi != nil {
		slopes := make([]float32, len(a.ALiBi.Slopes))
		for i, s := range a.ALiBi.Slopes {
			slopes[i] = float32(s)
		}
		if on.slopes, err = l.floats(slopes); err != nil {
			return nil, err
		}
	}
	on.out, err = l.linear(ctx, a.Out)
	return on, err
}

func (a *attention) run(p *pass, to, x cuda.Address, add bool) error {
	width := a.heads.Width()
	y, err := p.rowsBuffer("heads", width)
	if err != nil {
		return err
	}
	z, err := p.rowsBuffer("attended", a.heads.Queries*a.heads.ValueSize)
	if err != nil {
		return err
	}
	if a.latent != nil {
		err = a.latent.run(p, y, x)
	} else {
		err = p.apply(a.in, y, x, p.rows, a.in.inputs, width, p.act, false)
	}
	if err != nil {
		return err
	}
	for _, n := range a.norms {
		if err := p.normalize(n, y, y, width, width, false, 1); err != nil {
			return err
		}
	}
	if err := a.positions(p, y); err != nil {
		return err
	}
	if err := a.attend(p, z, y); err != nil {
		return err
	}
	return p.apply(a.out, to, z, p.rows, a.out.inputs, a.out.outputs, p.act, add)
}

// startsOf returns the first columns of all query, key and value heads.
func startsOf(h decoder.Heads) []int32 {
	queries, keys := h.Columns()
	all := toInt32(append(queries, keys...))
	for i := range h.KV {
		all = append(all, int32(h.Value(i)))
	}
	return all
}

// positions queues the rotation of queries and keys in y, and a copy of keys and values into the cache.
func (a *attention) positions(p *pass, y cuda.Address) error {
	r := rotary{Rotary: &decoder.Rotary{}}
	if a.rotary != nil {
		r = *a.rotary
	}
	parts := a.heads.Queries + a.heads.KV
	var keys, values cuda.Address
	capacity := 0
	if p.cache != nil {
		keys, values = p.cache.of(a.place)
		parts, capacity = parts+a.heads.KV, p.cache.capacity
	} else if len(r.Radians) == 0 {
		return nil
	}
	h := a.heads
	return p.kernels.place.Launch(cuda.Grid{X: p.rows, Y: parts}, cuda.Grid{X: 64}, y, keys, values, a.starts, p.places, p.sequence, p.lengths,
		r.short, r.long, h.Width(), h.Queries, h.KV, h.Size, h.ValueSize, r.First, len(r.Radians), number(r.Neighbours), r.LongFrom, capacity)
}

// columns holds the positions of the heads in a row of y: base columns, and distances in columns between query groups,
// key heads and value heads.
type columns struct{ queryStep, keyBase, keyStep, valueBase, valueStep int }

func columnsOf(h decoder.Heads) columns {
	c := columns{queryStep: h.Queries / h.KV * h.Size, keyBase: h.Key(0), keyStep: h.Size, valueBase: h.Value(0), valueStep: h.ValueSize}
	if h.ByHead {
		step := h.Width() / h.KV
		c.queryStep, c.keyStep, c.valueStep = step, step, step
	}
	return c
}

// attend queues z = softmax(scale·q·kᵀ)·v.
func (a *attention) attend(p *pass, z, y cuda.Address) error {
	if done, err := a.attendFast(p, z, y); done || err != nil {
		return err
	}
	h, c := a.heads, columnsOf(a.heads)
	coarse := a.ALiBi != nil && a.ALiBi.Coarse
	outStride, stride := h.Queries*h.ValueSize, h.Width()
	if p.step {
		keys, values := p.cache.of(a.place)
		return p.kernels.attendCache.Launch(cuda.Grid{X: 1, Y: h.Queries, Z: p.sequences}, cuda.Grid{X: threads},
			z, y, keys, values, p.lengths, a.slopes, outStride, stride, h.Queries, h.KV, h.Size, h.ValueSize, c.queryStep,
			p.cache.capacity, a.Scale, float32(a.Cap), a.Window, number(coarse))
	}
	return p.kernels.attendRows.Launch(cuda.Grid{X: (p.longest + tile - 1) / tile, Y: h.Queries, Z: p.sequences}, cuda.Grid{X: threads},
		z, y, p.starts, a.slopes, outStride, stride, h.Queries, h.KV, h.Size, h.ValueSize, c.queryStep, c.keyBase, c.keyStep,
		c.valueBase, c.valueStep, a.Scale, float32(a.Cap), a.Window, number(coarse))
}

func (a *attention) multiply(p *pass, to, x cuda.Address) error {
	y, err := p.rowsBuffer("heads", a.heads.Width())
	if err != nil {
		return err
	}
	z, err := p.rowsBuffer("attended", a.out.inputs)
	if err != nil {
		return err
	}
	if a.latent != nil {
		err = a.latent.multiply(p, x)
	} else {
		err = p.apply(a.in, y, x, p.rows, a.in.inputs, a.in.outputs, p.act, false)
	}
	if err != nil {
		return err
	}
	return p.apply(a.out, to, z, p.rows, a.out.inputs, a.out.outputs, p.act, false)
}
