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

// noise sums, over rows [first, last), the squares of what the layer should hold in real
// arithmetic and of what the stored result differs from it. A shift is free and counts as neither.
func (p *program) noise(ctx context.Context, first, last int) (signal, noise float64, err error) {
	exact := *p
	exact.affine, exact.ops = nil, nil
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
			if w-w != 0 { // NaN and infinity are kept, not judged
				continue
			}
			d := float64(got[i]) - add - w
			signal += w * w
			noise += d * d
		}
	})
	return signal, noise, err
}

// decibels of a ratio of squares; infinite where there is no noise.
func decibels(signal, noise float64) float64 {
	if noise == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(signal/noise)
}
