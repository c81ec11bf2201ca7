package transform

import (
	"context"
	"math/bits"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/weights"
)

// use is one tensor's axis along which an index runs, seen label by label.
type use struct {
	tensor     weights.Tensor
	format     weights.Format
	rows, cols int
	axis       int     // 0: labels are rows, 1: labels are columns
	positions  [][]int // of each label on the axis
	dir        []int   // by position: 2^1 on the index multiplies by 2^dir; 0 takes no sign either
	weight     float64 // share of the workload in which the axis' values count
	layer      bool    // the tensor is a layer's matrix
	outAxis    int     // of a layer: the axis of its outputs
	follow     []wire  // which places of the axis follow one another
	row, col   axisMap // what earlier passes planned: signs and exponents, by source position
}

// signed is u without the positions that take no signs and scales; nil where none do.
func (u *use) signed() *use {
	s := *u
	s.positions = make([][]int, len(u.positions))
	any := false
	for label, list := range u.positions {
		for _, pos := range list {
			if at(u.dir, pos, 0) != 0 {
				s.positions[label] = append(s.positions[label], pos)
				any = true
			}
		}
	}
	if !any {
		return nil
	}
	return &s
}

// signedUses keeps what takes signs and scales.
func signedUses(uses []*use) []*use {
	var list []*use
	for _, u := range uses {
		if s := u.signed(); s != nil {
			list = append(list, s)
		}
	}
	return list
}

// each calls fn with every element of every label, row by row, as earlier passes leave it, and the
// direction of its position. It stops early where ctx ends.
func (u *use) each(ctx context.Context, fn func(label int, b uint32, dir int)) error {
	if u.axis == 0 {
		return u.eachRow(ctx, fn)
	}
	for n := range u.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		for label, list := range u.positions {
			for _, pos := range list {
				fn(label, u.elem(n, pos), at(u.dir, pos, 0))
			}
		}
	}
	return nil
}

// eachRow is each where labels are rows.
func (u *use) eachRow(ctx context.Context, fn func(label int, b uint32, dir int)) error {
	for label, list := range u.positions {
		for _, pos := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			for k := range u.cols {
				fn(label, u.elem(pos, k), at(u.dir, pos, 0))
			}
		}
	}
	return nil
}

func (u *use) elem(n, k int) uint32 {
	b := u.format.Elem(u.tensor.Data, n*u.cols+k)
	flip := at(u.row.flip, n, false) != at(u.col.flip, k, false)
	if exp := at(u.row.exp, n, 0) + at(u.col.exp, k, 0); flip || exp != 0 {
		b, _ = scaled(u.format, b, flip, exp)
	}
	return b
}

// across is the length of the other axis.
func (u *use) across() int {
	if u.axis == 0 {
		return u.cols
	}
	return u.rows
}

// borders gives, for every label, the first and the last position of each of its runs of
// neighbouring positions. Inside a run nothing moves; at its borders labels meet.
func (u *use) borders() (heads, tails [][]int) {
	heads, tails = make([][]int, len(u.positions)), make([][]int, len(u.positions))
	for label, list := range u.positions {
		for i, pos := range list {
			if i == 0 || pos != list[i-1]+1 {
				heads[label] = append(heads[label], pos)
			}
			if i == len(list)-1 || pos != list[i+1]-1 {
				tails[label] = append(tails[label], pos)
			}
		}
	}
	return heads, tails
}

// sketch holds bits of every label of an index, packed, so that the bits that toggle where one label
// follows another are a popcount away.
type sketch struct {
	labels, words int
	head, tail    []uint64 // label × words; the same memory where labels are no blocks
	parts         []sketchPart
	groups        [][]wire  // the different ways in which places follow one another
	heavy         []float64 // the bits of each group's parts
}

// sketchPart is the words of one use that hold its bits, or, where signs may be given, only its signs: in
// its first half which are set, in its second which belong to values that are not zero. A zero keeps its
// sign bit whatever the sign.
type sketchPart struct {
	from, to, group int
	scale           float64 // bits of the use for a bit of the sample
	signs           bool
}

// separation is the bits that toggle where one label follows another, in one group: with signs as they are
// relative to each other, and with one of them turned.
type separation struct{ alike, opposed float64 }

// sketchOptions say what a sketch holds.
type sketchOptions struct {
	labels, maxBytes int
	// signs keeps signs apart where they may be given; only leaves everything else out.
	signs, only bool
	workers     int
	view        func(*use) (*view, error)
}

// packing is what goes to one part of a sketch.
type packing struct {
	sketchPart
	view         *view
	u            *use
	heads, tails [][]int
	mask         uint32 // of the bits that count, unless they are signs
	samples      int    // of each run of positions
	perWord      int    // elements
}

// newSketch samples labels evenly, so that the sketch takes at most maxBytes.
func newSketch(ctx context.Context, uses []*use, o sketchOptions) (*sketch, error) {
	s := &sketch{labels: o.labels}
	perUse := max(64, o.maxBytes/o.labels/len(uses))
	var list []packing
	blocks := false
	for _, u := range uses {
		blocks = blocks || u.blocks()
	}
	if blocks {
		perUse /= 2
	}
	for _, u := range uses {
		v, err := o.view(u)
		if err != nil {
			return nil, err
		}
		signed, plain := u.bySign(o.signs)
		if o.only {
			plain = nil
		}
		sign := u.format.SignMask()
		for _, kind := range []packing{{u: plain, mask: 2*sign - 1}, {u: signed, mask: sign - 1}, {u: signed, sketchPart: sketchPart{signs: true}}} {
			if kind.u != nil && (kind.signs || !o.only) {
				kind.view = v
				width := u.format.Bits
				if o.only {
					width = 2 // planes of bits
				}
				list = append(list, s.part(kind, perUse*8/width))
			}
		}
	}
	s.head = make([]uint64, s.labels*s.words)
	s.tail = s.head
	if blocks {
		s.tail = make([]uint64, s.labels*s.words)
	}
	for _, p := range list {
		err := p.pack(ctx, s.head, s.words, p.heads, o.workers)
		if err == nil && blocks {
			err = p.pack(ctx, s.tail, s.words, p.tails, o.workers)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// part reserves the words of a part, of at most so many elements, and at least one sample.
func (s *sketch) part(p packing, elements int) packing {
	f := &p.u.format
	p.heads, p.tails = p.u.borders()
	runs := len(p.heads[0])
	p.samples = min(p.u.across(), max(1, elements/runs))
	p.perWord = 64 / f.Bits
	if p.signs {
		p.perWord = 64
	}
	words := p.words()
	if p.signs {
		words *= 2
	}
	p.from, p.to, p.scale = s.words, s.words+words, float64(p.u.across())/float64(p.samples)
	p.group = s.group(p.u.follow)
	s.words = p.to
	s.heavy[p.group] += float64(p.u.across()*runs) * float64(max(1, bits.OnesCount32(p.mask)))
	s.parts = append(s.parts, p.sketchPart)
	return p
}

// words of one bit plane of signs, or of values.
func (p *packing) words() int { return (p.samples*len(p.heads[0]) + p.perWord - 1) / p.perWord }

// group finds the group of uses with these wires, or begins it.
func (s *sketch) group(follow []wire) int {
	for i, g := range s.groups {
		if slices.Equal(g, follow) {
			return i
		}
	}
	s.groups, s.heavy = append(s.groups, follow), append(s.heavy, 0)
	return len(s.groups) - 1
}

// bySign parts a use into the positions that may be given signs and the others; nil where there are none.
func (u *use) bySign(signs bool) (signed, plain *use) {
	if !signs || u.dir == nil {
		return nil, u
	}
	parts := [2]*use{}
	for label, list := range u.positions {
		for _, pos := range list {
			i := 0
			if u.dir[pos] == 0 {
				i = 1
			}
			if parts[i] == nil {
				part := *u
				part.positions = make([][]int, len(u.positions))
				parts[i] = &part
			}
			parts[i].positions[label] = append(parts[i].positions[label], pos)
		}
	}
	return parts[0], parts[1]
}

// put packs element e of a label.
func (p *packing) put(words []uint64, e int, v uint32) {
	f := &p.u.format
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

// pack writes each label's elements at the given positions, in tasks that share no word.
func (p *packing) pack(ctx context.Context, dst []uint64, stride int, positions [][]int, workers int) error {
	tasks, pack := len(positions), p.packLabels
	if p.u.axis == 1 {
		tasks, pack = p.samples, p.packSamples
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, workers))
	const task = 64 // of so many samples words are whole
	for first := 0; first < tasks; first += task {
		g.Go(func() error {
			return weights.Guard(p.u.tensor.File, func() error {
				return pack(ctx, dst, stride, positions, first, min(first+task, tasks))
			})
		})
	}
	return g.Wait()
}

// other is the position of a sample on the other axis.
func (p *packing) other(sample int) int { return sample * p.u.across() / p.samples }

func (p *packing) packLabels(ctx context.Context, dst []uint64, stride int, positions [][]int, from, to int) error {
	rows := p.view.reader()
	for label := from; label < to; label++ {
		words := dst[label*stride : (label+1)*stride]
		for run, pos := range positions[label] {
			if err := ctx.Err(); err != nil {
				return err
			}
			row := rows.read(pos)
			for sample := range p.samples {
				p.put(words, sample*len(positions[label])+run, p.u.format.Elem(row, p.other(sample)))
			}
		}
	}
	return nil
}

func (p *packing) packSamples(ctx context.Context, dst []uint64, stride int, positions [][]int, from, to int) error {
	rows := p.view.reader()
	const few = 4 // rows at a time, so that a label's words are not visited for every element
	data := make([]byte, 0, few*p.view.rowBytes())
	for ; from < to; from += few {
		if err := ctx.Err(); err != nil {
			return err
		}
		data = data[:0]
		for sample := from; sample < min(from+few, to); sample++ {
			data = append(data, rows.read(p.other(sample))...)
		}
		for label, list := range positions {
			words := dst[label*stride : (label+1)*stride]
			for run, pos := range list {
				for i := range min(few, to-from) {
					p.put(words, (from+i)*len(list)+run, p.u.format.Elem(data, i*p.u.cols+pos))
				}
			}
		}
	}
	return nil
}

// between adds up, group by group, what toggles where label b follows label a.
func (s *sketch) between(a, b int, sum []separation) {
	clear(sum)
	for _, p := range s.parts {
		x := s.tail[a*s.words+p.from : a*s.words+p.to]
		y := s.head[b*s.words+p.from : b*s.words+p.to]
		to := &sum[p.group]
		if !p.signs {
			n := 0
			y = y[:len(x)]
			for i, v := range x {
				n += bits.OnesCount64(v ^ y[i])
			}
			to.alike += p.scale * float64(n)
			to.opposed += p.scale * float64(n)
			continue
		}
		half := len(x) / 2
		differ, both := 0, 0
		for i := range half {
			set := x[half+i] & y[half+i]
			both += bits.OnesCount64(set)
			differ += bits.OnesCount64((x[i] ^ y[i]) & set)
		}
		to.alike += p.scale * float64(differ)
		to.opposed += p.scale * float64(both-differ)
	}
}
