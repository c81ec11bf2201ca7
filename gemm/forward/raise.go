package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// raise computes long vectors from short ones: up(norm(x)). The zero value is none.
type raise struct {
	norm norm
	up   linear
}

func (r raise) missing() bool { return r.up.weight == "" }

type loadedRaise struct {
	raise
	norm loadedNorm
	up   loaded
	x, y sgemm.Matrix
}

func (r raise) load(ctx context.Context, w Weights, rows int) (l loadedRaise, err error) {
	if l.raise = r; r.missing() {
		return l, nil
	}
	if l.norm, err = r.norm.load(ctx, w); err != nil {
		return l, err
	}
	l.up, err = r.up.load(ctx, w)
	l.x, l.y = sgemm.Dense(rows, r.up.inputs, nil), sgemm.Dense(rows, r.up.outputs, nil)
	return l, err
}

// apply reads the first columns of x. What it returns is valid until the next call.
func (l loadedRaise) apply(p *pass, x sgemm.Matrix) (sgemm.Matrix, error) {
	short, long := l.x.Slice(0, x.Rows, 0, l.x.Cols), l.y.Slice(0, x.Rows, 0, l.y.Cols)
	if err := p.normalize(p, l.norm, short, x.Slice(0, x.Rows, 0, short.Cols)); err != nil {
		return long, err
	}
	if err := p.observe(short, l.raise.up); err != nil {
		return long, err
	}
	return long, p.Decoder.apply(p, l.up, long, short)
}

func (b *builder) raise(layer int, norm, up string, epsilon float64) raise {
	r := raise{b.norm(layer, norm), b.linear(up, layer)}
	r.norm.epsilon = epsilon
	if r.norm.width != r.up.inputs {
		b.failf("tensor %q: has %d inputs, its norm %d", r.up.weight, r.up.inputs, r.norm.width)
	}
	return r
}
