package runner

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// block is a block on the card.
type block struct {
	steps  []step
	memory *cuda.Memory
}

// step is a list of branches whose outputs are added to the residual stream.
type step []branch

type branch struct {
	norm  norm
	parts []part
}

// part is attention, an FFN or experts, with the norm and scale of its output. It reads the output of a branch's norm.
type part struct {
	mixer
	norm  norm // norm of the output
	scale float32
}

// mixer is attention, a feed-forward network or routed experts.
type mixer interface {
	// run queues to = f(x), or to += f(x) if add is true, for x[rows, hidden].
	run(p *pass, to, x cuda.Address, add bool) error
	// multiply queues only the linear layers. Their inputs are the current contents of the buffers that run uses.
	multiply(p *pass, to, x cuda.Address) error
}

// loadBlock loads a block into its own memory. It must be called within Device.Do.
func (m *Model) loadBlock(ctx context.Context, i int) (*block, error) {
	b := &block{memory: m.device.NewMemory()}
	l := m.loader(b.memory)
	for _, s := range m.decoder.Blocks[i] {
		var on step
		for _, branch := range s {
			one, err := l.branch(ctx, branch, m.turns)
			if err != nil {
				_ = b.memory.Free() // the first error is returned
				return nil, fmt.Errorf("block %d: %w", i, err)
			}
			on = append(on, one)
		}
		b.steps = append(b.steps, on)
	}
	return b, nil
}

func (l *loader) branch(ctx context.Context, b decoder.Branch, turns *turns) (on branch, err error) {
	if on.norm, err = l.norm(ctx, b.Norm); err != nil {
		return on, err
	}
	for _, p := range b.Parts {
		one := part{scale: p.Scale}
		switch {
		case p.Attention != nil:
			one.mixer, err = l.attention(ctx, p.Attention, turns)
		case p.FFN != nil:
			one.mixer, err = l.ffn(ctx, p.FFN)
		default:
			one.mixer, err = l.experts(ctx, p.Experts)
		}
		if err != nil {
			return on, err
		}
		if one.norm, err = l.norm(ctx, p.Norm); err != nil {
			return on, err
		}
		on.parts = append(on.parts, one)
	}
	return on, nil
}

// run moves the residual stream h[rows, hidden] through a block.
func (b *block) run(p *pass, h cuda.Address) error {
	for _, s := range b.steps {
		if err := s.run(p, h); err != nil {
			return err
		}
	}
	return nil
}

func (s step) run(p *pass, h cuda.Address) error {
	inputs := make([]cuda.Address, len(s))
	for i, b := range s { // compute all inputs before the stream changes
		var err error
		if inputs[i], err = p.input(s, i, h); err != nil {
			return err
		}
		if inputs[i] == h {
			continue
		}
		if b.norm.Missing() {
			err = p.device.CopyWithin(inputs[i], h, p.rows*p.hidden*p.act.Bytes())
		} else {
			err = p.normalize(b.norm, inputs[i], h, p.hidden, p.hidden, false, 1)
		}
		if err != nil {
			return err
		}
	}
	for i, b := range s {
		for _, part := range b.parts {
			if err := part.add(p, h, inputs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// input returns the address that the parts of branch i read. It is a buffer, or the residual stream h itself if h does
// not change before they read it.
func (p *pass) input(s step, i int, h cuda.Address) (cuda.Address, error) {
	if s[i].norm.Missing() && len(s) == 1 && len(s[i].parts) == 1 {
		return h, nil
	}
	return p.rowsBuffer(fmt.Sprintf("x%d", i), p.hidden)
}

// plain reports whether the part's output is added to the residual stream unchanged.
func (t part) plain() bool { return t.norm.Missing() && t.scale == 1 }

// output returns the address that the part's last layer writes: the residual stream h, or a buffer.
func (t part) output(p *pass, h cuda.Address) (cuda.Address, error) {
	if t.plain() {
		return h, nil
	}
	return p.rowsBuffer("part", p.hidden)
}

// add adds the part's output for x to h.
func (t part) add(p *pass, h, x cuda.Address) error {
	y, err := t.output(p, h)
	if err != nil {
		return err
	}
	if err := t.run(p, y, x, t.plain()); err != nil || t.plain() {
		return err
	}
	if t.norm.Missing() {
		return p.kernels.addRows.Launch(flat(p.rows*p.hidden), cuda.Grid{X: threads}, h, y, p.rows, p.hidden, t.scale)
	}
	return p.normalize(t.norm, h, y, p.hidden, p.hidden, true, t.scale)
}
