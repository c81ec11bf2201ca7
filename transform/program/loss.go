package program

import (
	"context"
	"math"
)

// Loss is what a program costs some rows in accuracy.
type Loss struct {
	Signal, Noise float64 // sums of squares
	NonFinite     int     // NaN and infinite values: kept, and left out of the sums
}

// Decibels is the output SNR; infinite where there is no noise.
func (l Loss) Decibels() float64 {
	if l.Noise == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(l.Signal/l.Noise)
}

// Plus adds the losses of other rows.
func (l Loss) Plus(o Loss) Loss {
	return Loss{l.Signal + o.Signal, l.Noise + o.Noise, l.NonFinite + o.NonFinite}
}

// LossOfWhole reports whether Loss is that of the whole layer, whatever the rows.
func (p *Program) LossOfWhole() bool { return p.joint != nil && p.joint.hessians != nil }

// Loss sums, over rows [first, last), the squares of what the layer should hold in real arithmetic and of what
// the stored result differs from it. A shift is free and counts as neither.
//
// Where the values were chosen jointly by a Hessian it is the whole output's loss on held-out tokens.
func (p *Program) Loss(ctx context.Context, first, last int) (l Loss, err error) {
	if p.LossOfWhole() {
		before, err := p.Layer(ctx, p.joint.hessians.Held, 1)
		if err != nil {
			return l, err
		}
		after, err := p.Outputs(ctx)
		if err != nil {
			return l, err
		}
		lost, err := before.Lost(ctx, after, 1)
		return Loss{Signal: lost.Signal, Noise: lost.Error}, err
	}
	exact := p.Lossless()
	exact.affine = nil
	height := min(p.blockRows(), last-first)
	want := make([]float32, height*p.Cols)
	ref := make([]byte, height*p.RowBytes())
	var add float64
	if p.affine != nil {
		add = float64(p.affine.Add)
	}
	err = p.EachValues(ctx, first, last, func(b Block, got []float32) {
		exact.Run(ref, b.First, b.Rows)
		want := want[:len(got)]
		p.Format.Decode(want, ref)
		for i, v := range want {
			w := float64(v)
			if p.affine != nil {
				w *= float64(p.affine.factor(b.First+i/b.Cols, i%b.Cols))
			}
			if w-w != 0 {
				l.NonFinite++
				continue
			}
			d := float64(got[i]) - add - w
			l.Signal += float64(w * w) // explicit, so that no machine fuses it
			l.Noise += float64(d * d)
		}
	})
	return l, err
}
