package verify

import "math"

// difference is what is left between an output and an image of its source.
type difference struct {
	signal, noise float64 // sums of squares
	changed       int     // finite values whose bits are not the image's
	spread        int     // values that are finite on one side only, or NaN of other bits
	nonFinite     int
	zerosAdded    int
	worstUlp      float64 // largest error in units of the last place of the stored value
}

// compare holds every element of the output against the image of the source: scale multiplies the
// source's inputs (nil: ones), add is added after that. A shift counts neither as signal nor as
// noise.
func (p *pair) compare(im *image, scale []float64, add float64) difference {
	var d difference
	real := scale != nil || add != 0 || p.aValues != nil
	for n := range p.rows {
		from := place(im.row, n)
		rowFlip, rowExp := flag(im.rowFlip, n), number(im.rowExp, n)
		for k := range p.cols {
			at := from*p.cols + place(im.col, k)
			a, b := p.f.Elem(p.a.Data, at), p.f.Elem(p.b.Data, n*p.cols+k)
			if !p.f.Finite(a) || !p.f.Finite(b) {
				d.nonFinite++
				if a != b && p.aValues == nil {
					d.spread++
				}
				continue
			}
			v := float64(p.f.Value(a))
			if p.aValues != nil {
				v = p.aValues[at]
			}
			if rowFlip != flag(im.colFlip, k) {
				v = -v
			}
			if e := rowExp + number(im.colExp, k); e != 0 {
				v = math.Ldexp(v, e)
			}
			if scale != nil {
				v *= scale[p.input(from, place(im.col, k))]
			}
			got := float64(p.f.Value(b))
			err := got - add - v
			d.signal += v * v
			d.noise += err * err
			if err != 0 || !real && math.Signbit(got) != math.Signbit(v) {
				d.changed++
			}
			if got == 0 && v+add != 0 {
				d.zerosAdded++
			}
			if real {
				d.worstUlp = max(d.worstUlp, math.Abs(err)/p.ulp(v+add))
			}
		}
	}
	return d
}

// ulp is the distance between representable values at v.
func (p *pair) ulp(v float64) float64 {
	_, e := math.Frexp(v)
	return math.Ldexp(1, max(e-1, 1-p.f.Bias)-p.f.MantBits)
}

// inputs is the length of the input axis; input is the position on it.
func (p *pair) inputs() int {
	if p.inputRows {
		return p.rows
	}
	return p.cols
}

func (p *pair) input(n, k int) int {
	if p.inputRows {
		return n
	}
	return k
}

func (p *pair) nonFinite() int {
	n := 0
	for i := range p.rows * p.cols {
		if !p.f.Finite(p.f.Elem(p.a.Data, i)) {
			n++
		}
	}
	return n
}

func flag(list []bool, i int) bool { return list != nil && list[i] }

func number(list []int, i int) int {
	if list == nil {
		return 0
	}
	return list[i]
}

func nonzero(list []int) int {
	n := 0
	for _, e := range list {
		if e != 0 {
			n++
		}
	}
	return n
}

// summary counts what an image moves; nil where it moves nothing.
func (im *image) summary(source string) *Relation {
	moved := func(list []int) int {
		n := 0
		for i, from := range list {
			if i != from {
				n++
			}
		}
		return n
	}
	r := Relation{moved(im.row), moved(im.col), countTrue(im.rowFlip), countTrue(im.colFlip), nonzero(im.rowExp), nonzero(im.colExp), source}
	if r == (Relation{Source: source}) {
		return nil
	}
	return &r
}
