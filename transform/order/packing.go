package order

import (
	"context"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// packing describes one part of a sketch.
type packing struct {
	sketchPart
	u            *Use
	heads, tails [][]int
	runs         int    // the most of a label
	mask         uint32 // of the bits that count, if values are packed
	samples      int    // of each run of positions
	perWord      int    // elements packed into a word
}

// words returns the number of words of one bit plane.
func (p *packing) words() int { return (p.samples*p.runs + p.perWord - 1) / p.perWord }

// put packs element e of a label.
func (p *packing) put(words []uint64, e int, v uint32) {
	f := &p.u.Format
	at := p.from + e/p.perWord
	if !p.signs {
		words[at] |= uint64(v&p.mask) << (e % p.perWord * f.Bits)
		return
	}
	if v&f.SignMask() != 0 {
		words[at] |= 1 << (e % 64)
	}
	if v&^f.SignMask() != 0 || v != 0 && !f.IsFloat() {
		words[at+p.words()] |= 1 << (e % 64)
	}
}

// pack writes each label's elements at the given positions. Tasks share no words.
func (p *packing) pack(ctx context.Context, dst []uint64, stride int, positions [][]int, workers int) error {
	tasks, pack := len(positions), p.packLabels
	if p.u.Axis == 1 {
		tasks, pack = p.samples, p.packSamples
	}
	const task = 64 // the words of this many samples are whole
	return parallel.Spans(ctx, tasks, task, workers, func(ctx context.Context, first, end int) error {
		return p.u.Guard(func() error { return pack(ctx, dst, stride, positions, first, end) })
	})
}

// other returns the position of a sample on the other axis.
func (p *packing) other(sample int) int { return sample * p.u.Across() / p.samples }

func (p *packing) packLabels(ctx context.Context, dst []uint64, stride int, positions [][]int, from, to int) error {
	row := p.u.Reader()
	for label := from; label < to; label++ {
		words := dst[label*stride : (label+1)*stride]
		for run, pos := range positions[label] {
			if err := ctx.Err(); err != nil {
				return err
			}
			data := row(pos)
			for sample := range p.samples {
				p.put(words, sample*p.runs+run, p.u.Format.Elem(data, p.other(sample)))
			}
		}
	}
	return nil
}

func (p *packing) packSamples(ctx context.Context, dst []uint64, stride int, positions [][]int, from, to int) error {
	row := p.u.Reader()
	const few = 4 // rows at a time, so that a label's words are not visited for every element
	data := make([]byte, 0, few*p.u.Cols*p.u.Format.Bits/8)
	for ; from < to; from += few {
		if err := ctx.Err(); err != nil {
			return err
		}
		data = data[:0]
		for sample := from; sample < min(from+few, to); sample++ {
			data = append(data, row(p.other(sample))...)
		}
		for label, list := range positions {
			words := dst[label*stride : (label+1)*stride]
			for run, pos := range list {
				for i := range min(few, to-from) {
					p.put(words, (from+i)*p.runs+run, p.u.Format.Elem(data, i*p.u.Cols+pos))
				}
			}
		}
	}
	return nil
}
