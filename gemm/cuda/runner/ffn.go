package runner

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// ffn is a feed-forward network on the card.
type ffn struct {
	*decoder.FFN
	in, out *linear
}

func (l *loader) ffn(ctx context.Context, f *decoder.FFN) (*ffn, error) {
	on := &ffn{FFN: f}
	var err error
	if on.in, err = l.linear(ctx, f.In...); err != nil {
		return nil, err
	}
	on.out, err = l.linear(ctx, f.Out)
	return on, err
}

func (f *ffn) run(p *pass, to, x cuda.Address, add bool) error {
	return f.rows(p, to, x, p.rows, add)
}

// rows computes run for a given number of rows.
func (f *ffn) rows(p *pass, to, x cuda.Address, rows int, add bool) error {
	y, err := p.buffer("neurons", rows*f.in.outputs*p.act.Bytes())
	if err != nil {
		return err
	}
	z, err := p.buffer("activated", rows*f.Neurons()*p.act.Bytes())
	if err != nil {
		return err
	}
	if err := p.apply(f.in, y, x, rows, f.in.inputs, f.in.outputs, p.act, false); err != nil {
		return err
	}
	blocks := cuda.Grid{X: rows, Y: max(1, min(f.Neurons()/threads/8, 64))}
	if err := p.kernels.activate.Launch(blocks, cuda.Grid{X: threads}, z, y, f.Neurons(), number(f.Gated), int(f.Activation)); err != nil {
		return err
	}
	return p.apply(f.out, to, z, rows, f.out.inputs, f.out.outputs, p.act, add)
}

func (f *ffn) multiply(p *pass, to, x cuda.Address) error { return f.multiplyRows(p, to, x, p.rows) }

// multiplyRows computes multiply for a given number of rows.
func (f *ffn) multiplyRows(p *pass, to, x cuda.Address, rows int) error {
	y, err := p.buffer("neurons", rows*f.in.outputs*p.act.Bytes())
	if err != nil {
		return err
	}
	z, err := p.buffer("activated", rows*f.Neurons()*p.act.Bytes())
	if err != nil {
		return err
	}
	if err := p.apply(f.in, y, x, rows, f.in.inputs, f.in.outputs, p.act, false); err != nil {
		return err
	}
	return p.apply(f.out, to, z, rows, f.out.inputs, f.out.outputs, p.act, false)
}
