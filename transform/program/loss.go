package program

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// Loss is the error of a program in some rows.
type Loss struct {
	Signal, Noise float64 // sums of squares of the exact values and of the errors
	NonFinite     int     // number of NaN and infinite values, which are not in the sums
}

// Decibels returns the output SNR in dB; infinite if there is no error.
func (l Loss) Decibels() float64 {
	if l.Noise == 0 {
		return math.Inf(1)
	}
	return 10 * elementary.Log10(l.Signal/l.Noise)
}

// Plus returns the sum of two losses.
func (l Loss) Plus(o Loss) Loss {
	return Loss{l.Signal + o.Signal, l.Noise + o.Noise, l.NonFinite + o.NonFinite}
}

// add adds the loss of values got, given the exact values want.
func (l *Loss) add(want, got []float32) {
	got = got[:len(want)]
	signal, noise := l.Signal, l.Noise // local variables stay in registers
	for k, v := range want {
		w := float64(v)
		if w-w != 0 {
			l.NonFinite++
			continue
		}
		d := float64(got[k]) - w
		signal += float64(w * w) // the conversion prevents fusing, for equal results on all machines
		noise += float64(d * d)
	}
	l.Signal, l.Noise = signal, noise
}

// LossOfWhole reports whether Loss returns the loss of the whole layer for any rows.
func (p *Program) LossOfWhole() bool {
	return p.joint != nil && p.joint.hessians != nil || p.coded != nil && p.coded.hessians != nil
}

// Loss returns the loss of rows [first, last). The signal is the result in real arithmetic. The noise is the
// difference between the stored result and the signal. Signal and noise do not include the constant of a shift.
//
// If the values are chosen jointly with a Hessian, Loss returns the loss of the layer's whole output on held-out
// tokens.
func (p *Program) Loss(ctx context.Context, first, last int) (l Loss, err error) {
	switch {
	case p.coded != nil && p.coded.hessians != nil:
		return p.hessianLoss(ctx, p.coded.hessians)
	case p.Coded():
		return p.lossCoded(ctx, first, last)
	case p.LossOfWhole():
		return p.hessianLoss(ctx, p.joint.hessians)
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
			l.Signal += float64(w * w) // the conversion prevents fusing, for equal results on all machines
			l.Noise += float64(d * d)
		}
	})
	return l, err
}
