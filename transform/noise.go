package transform

import (
	"context"
	"math"
)

// blockElems is about how many elements a block has: enough to amortise its handling, few enough
// to stay in a core's cache.
const blockElems = 1 << 15

// blockRows is the height of blocks: a multiple of the program's unit.
func (p *program) blockRows() int {
	rows := max(1, blockElems/max(1, p.cols))
	return max(p.unit, rows/p.unit*p.unit)
}

// eachBlock runs the program over rows [first, last) and hands out each block of the result.
func (p *program) eachBlock(ctx context.Context, first, last int, fn func(b block)) error {
	step := min(p.blockRows(), last-first)
	data := make([]byte, step*p.rowBytes())
	for n := first; n < last; n += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := min(step, last-n)
		p.run(data, n, rows)
		fn(block{n, rows, p.cols, data[:rows*p.rowBytes()], p.format})
	}
	return nil
}

// eachValues is eachBlock with the values of each block beside it.
func (p *program) eachValues(ctx context.Context, first, last int, fn func(b block, values []float32)) error {
	values := make([]float32, min(p.blockRows(), last-first)*p.cols)
	return p.eachBlock(ctx, first, last, func(b block) {
		v := values[:b.rows*p.cols]
		p.format.Decode(v, b.data)
		fn(b, v)
	})
}

// loss is what a program costs some rows.
type loss struct {
	signal, noise float64 // sums of squares
	nonFinite     int     // NaN and infinite values: kept, not judged
}

// decibels is the signal-to-noise ratio; infinite where there is no noise.
func (l loss) decibels() float64 {
	if l.noise == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(l.signal/l.noise)
}

func (l loss) plus(o loss) loss {
	return loss{l.signal + o.signal, l.noise + o.noise, l.nonFinite + o.nonFinite}
}

// loss sums, over rows [first, last), the squares of what the layer should hold in real arithmetic
// and of what the stored result differs from it. A shift is free and counts as neither.
//
// Of a whole result that knows the layer's inputs it is the output's loss on those that are held back.
func (p *program) loss(ctx context.Context, first, last int) (l loss, err error) {
	if p.whole != nil && p.whole.inputs != nil {
		before, err := p.layer(ctx, p.whole.inputs.Held, 1)
		if err != nil {
			return l, err
		}
		after, err := p.outputs(ctx)
		if err != nil {
			return l, err
		}
		lost, err := before.lost(ctx, after, 1)
		return loss{signal: lost.Signal, noise: lost.Error}, err
	}
	exact := *p
	exact.affine, exact.ops, exact.whole = nil, nil, nil
	height := min(p.blockRows(), last-first)
	want := make([]float32, height*p.cols)
	ref := make([]byte, height*p.rowBytes())
	var add float64
	if p.affine != nil {
		add = float64(p.affine.add)
	}
	err = p.eachValues(ctx, first, last, func(b block, got []float32) {
		exact.run(ref, b.first, b.rows)
		want := want[:len(got)]
		p.format.Decode(want, ref)
		for i, v := range want {
			w := float64(v)
			if p.affine != nil {
				w *= float64(p.affine.factor(b.first+i/b.cols, i%b.cols))
			}
			if w-w != 0 {
				l.nonFinite++
				continue
			}
			d := float64(got[i]) - add - w
			l.signal += float64(w * w) // explicit, so that no machine fuses it
			l.noise += float64(d * d)
		}
	})
	return l, err
}
