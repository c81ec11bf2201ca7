package transform

import (
	"context"
	"math/bits"

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
	weight     float64 // share of the workload in which neighbours along this axis toggle
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

// sketch holds bits of every label of an index, packed, so that the bits that toggle between two
// labels in a row are a popcount away.
type sketch struct {
	labels, words int
	head, tail    []uint64 // label × words; the same memory where runs have length 1
	parts         []sketchPart
	bits          float64 // what distance would be if every bit differed, weighted
}

type sketchPart struct {
	from, to int // words
	weight   float64
}

// newSketch samples labels evenly, so that the sketch takes at most maxBytes. mask chooses the
// bits of an element that count.
func newSketch(ctx context.Context, uses []*use, labels, maxBytes int, mask func(*use) uint32) (*sketch, error) {
	s := &sketch{labels: labels}
	perUse := max(64, maxBytes/labels/len(uses)/2)
	type part struct {
		u            *use
		heads, tails [][]int
		samples      int // per run
	}
	var parts []part
	for _, u := range uses {
		heads, tails := u.borders()
		p := part{u, heads, tails, u.across()}
		size := u.format.Bits / 8
		p.samples = min(p.samples, max(1, perUse/size/len(heads[0])))
		from := s.words
		s.words += (p.samples*len(heads[0])*size + 7) / 8
		s.parts = append(s.parts, sketchPart{from, s.words, u.weight})
		s.bits += u.weight * float64(p.samples*len(heads[0])*bits.OnesCount32(mask(u)))
		parts = append(parts, p)
	}
	s.head = make([]uint64, labels*s.words)
	s.tail = s.head
	for _, p := range parts {
		if len(p.u.positions[0]) > len(p.heads[0]) {
			s.tail = make([]uint64, labels*s.words)
			break
		}
	}
	for i, p := range parts {
		err := p.u.pack(ctx, s.head, s.words, s.parts[i].from, p.heads, p.samples, mask(p.u))
		if err == nil && &s.head[0] != &s.tail[0] {
			err = p.u.pack(ctx, s.tail, s.words, s.parts[i].from, p.tails, p.samples, mask(p.u))
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// pack writes the chosen bits of each label's elements at the given positions.
func (u *use) pack(ctx context.Context, dst []uint64, words, from int, positions [][]int, samples int, mask uint32) error {
	perWord := 64 / u.format.Bits
	across := u.across()
	for sample := range samples { // outermost, so that columns are read row by row
		if err := ctx.Err(); err != nil {
			return err
		}
		other := sample * across / samples
		for label, list := range positions {
			for run, pos := range list {
				n, k := pos, other
				if u.axis == 1 {
					n, k = other, pos
				}
				e := run*samples + sample
				dst[label*words+from+e/perWord] |= uint64(u.elem(n, k)&mask) << (e % perWord * u.format.Bits)
			}
		}
	}
	return nil
}

// distance is the weighted number of bits that toggle where b follows a.
func (s *sketch) distance(a, b int) float64 { return s.distanceBelow(a, b, inf) }

const inf = 1e300

// distanceBelow may stop early, with any value of at least limit, once the distance reaches it.
func (s *sketch) distanceBelow(a, b int, limit float64) float64 {
	var d float64
	for _, p := range s.parts {
		x := s.tail[a*s.words+p.from : a*s.words+p.to]
		y := s.head[b*s.words+p.from : b*s.words+p.to]
		y = y[:len(x)]
		for len(x) > 0 && d < limit {
			chunk := min(len(x), 64)
			n := 0
			for i, v := range x[:chunk] {
				n += bits.OnesCount64(v ^ y[i])
			}
			d += p.weight * float64(n)
			x, y = x[chunk:], y[chunk:]
		}
	}
	return d
}

// path is the sum of the distances along an order.
func (s *sketch) path(order []int) float64 {
	var sum float64
	for i := range order[1:] {
		sum += s.distance(order[i], order[i+1])
	}
	return sum
}
