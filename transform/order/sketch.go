package order

import (
	"context"
	"errors"
	"math/bits"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
)

// Sketch holds packed bits of every label of an index. The number of toggles between two labels is a popcount.
type Sketch struct {
	labels, words int
	head, tail    []uint64 // label × words; the same memory if labels are not blocks
	parts         []sketchPart
	groups        [][]cost.Lag // the different lags of the parts
	heavy         []float64    // bits of each group's parts
}

// sketchPart is the words of one use. They hold the bits of values or, if signs are chosen, sign bits in the first
// half and nonzero bits in the second. A zero keeps its sign bit whatever its label's sign.
type sketchPart struct {
	from, to, group int
	scale           float64 // bits of the use for each sampled bit
	signs           bool
}

// separation is the number of bits of one group that toggle where one label lags another: with both signs kept, and
// with one of them flipped.
type separation struct{ alike, opposed float64 }

// SketchOptions select the bits of a sketch.
type SketchOptions struct {
	Labels, MaxBytes int
	// Signs stores the signs of labels that may be flipped separately. OnlySigns stores nothing else.
	Signs, OnlySigns bool
	Workers          int
}

// NewSketch samples the values of labels evenly. The sketch takes at most o.MaxBytes bytes.
func NewSketch(ctx context.Context, uses []*Use, o SketchOptions) (*Sketch, error) {
	if o.Labels < 1 || len(uses) == 0 {
		return nil, errors.New("a sketch needs labels and uses")
	}
	s := &Sketch{labels: o.Labels}
	const least = 64 // bytes of a label and use
	uses = spread(uses, o.MaxBytes/o.Labels/least)
	perUse := max(least, o.MaxBytes/o.Labels/len(uses))
	var list []packing
	blocks := false
	for _, u := range uses {
		blocks = blocks || u.Blocks()
	}
	if blocks {
		perUse /= 2
	}
	for _, u := range uses {
		signed, plain := u.bySign(o.Signs)
		if o.OnlySigns {
			plain = nil
		}
		sign := u.Format.SignMask()
		for _, kind := range []packing{{u: plain, mask: 2*sign - 1}, {u: signed, mask: sign - 1}, {u: signed, sketchPart: sketchPart{signs: true}}} {
			if kind.u != nil && (kind.signs || !o.OnlySigns) {
				width := u.Format.Bits
				if o.OnlySigns {
					width = 2 // bit planes
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
		err := p.pack(ctx, s.head, s.words, p.heads, o.Workers)
		if err == nil && blocks {
			err = p.pack(ctx, s.tail, s.words, p.tails, o.Workers)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// spread selects at most most uses, and at least one, evenly from the whole model.
func spread(uses []*Use, most int) []*Use {
	most = max(1, most)
	if len(uses) <= most {
		return uses
	}
	list := make([]*Use, most)
	for i := range list {
		list[i] = uses[i*len(uses)/most]
	}
	return list
}

// part reserves the words of a part, for at most the given number of elements and at least one sample.
func (s *Sketch) part(p packing, elements int) packing {
	f := &p.u.Format
	p.heads, p.tails = p.u.borders()
	for _, list := range p.heads { // the first label may have no position, such as one whose sign is free
		p.runs = max(p.runs, len(list))
	}
	p.samples = min(p.u.Across(), max(1, elements/max(1, p.runs)))
	p.perWord = 64 / f.Bits
	if p.signs {
		p.perWord = 64
	}
	words := p.words()
	if p.signs {
		words *= 2
	}
	p.from, p.to, p.scale = s.words, s.words+words, float64(p.u.Across())/float64(p.samples)
	p.group = s.group(p.u.Lags)
	s.words = p.to
	s.heavy[p.group] += float64(float64(p.u.Across()*p.runs) * float64(max(1, bits.OnesCount32(p.mask))))
	s.parts = append(s.parts, p.sketchPart)
	return p
}

// group returns the group of uses with these lags. If there is none, it adds one.
func (s *Sketch) group(lags []cost.Lag) int {
	for i, g := range s.groups {
		if sameLags(g, lags) {
			return i
		}
	}
	s.groups, s.heavy = append(s.groups, lags), append(s.heavy, 0)
	return len(s.groups) - 1
}

func sameLags(a, b []cost.Lag) bool {
	return slices.EqualFunc(a, b, func(a, b cost.Lag) bool {
		return a.Distance == b.Distance && slices.Equal(a.Weights, b.Weights)
	})
}

// between adds to sum, by group, the toggles where label b lags label a.
func (s *Sketch) between(a, b int, sum []separation) {
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
			to.alike += float64(p.scale * float64(n))
			to.opposed += float64(p.scale * float64(n))
			continue
		}
		half := len(x) / 2
		differ, both := 0, 0
		for i := range half {
			set := x[half+i] & y[half+i]
			both += bits.OnesCount64(set)
			differ += bits.OnesCount64((x[i] ^ y[i]) & set)
		}
		to.alike += float64(p.scale * float64(differ))
		to.opposed += float64(p.scale * float64(both-differ))
	}
}

// Placement returns the placement of a path of the sketch's labels.
func (s *Sketch) Placement() *Placement { return newPlacement(s.labels, s.groups, s.heavy) }
