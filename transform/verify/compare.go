package verify

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// difference is the difference between an output and an image of its source.
type difference struct {
	signal, noise float64 // sums of squares
	changed       int     // finite values that differ from the image's
	spread        int     // values that are finite on one side only, or NaN with other bits
	nonFinite     int
	zerosAdded    int
	wrong         string // message about the first value outside the tolerance
}

// valuesAre is the subject and verb of a problem of n values.
func valuesAre(n int) string {
	if n == 1 {
		return "1 value is"
	}
	return fmt.Sprintf("%d values are", n)
}

// bitsOf counts bits of a kind, such as low bits.
func bitsOf(n int, kind string) string {
	if n == 1 {
		return "1 " + kind + " bit"
	}
	return fmt.Sprintf("%d %s bits", n, kind)
}

// compare compares every element of the output with the image of the source. scale multiplies the source's inputs
// (nil: ones), and then add is added. A shift is neither signal nor noise. may is the tolerance (nil: any value).
func (p *pair) compare(ctx context.Context, im *image, scale []float64, add float64, may *tolerance) (difference, error) {
	var d difference
	e := &expected{p: p, im: im, scale: scale, add: add, source: make([]float32, p.cols)}
	want, after := make([]float64, p.cols), make([]float32, p.cols)
	var zeros *zeroing
	if may != nil && may.zeros != nil {
		zeros = newZeroing(may.zeros, p.rows, p.cols, may.outAxis)
	}
	for n := range p.rows {
		if err := ctx.Err(); err != nil {
			return d, err
		}
		var zero []bool
		if zeros != nil {
			zero = zeros.row(n, e.stored)
		}
		e.row(want, n)
		p.decodeRow(after, p.b, n)
		for k, got := range after {
			v := want[k]
			if v-v != 0 || got-got != 0 {
				d.special(p, place(im.row, n)*p.cols+place(im.col, k), n*p.cols+k)
				continue
			}
			d.signal += float64(v * v)
			if err := float64(got) - add - v; err != 0 || !e.real() && math.Signbit(float64(got)) != math.Signbit(v) {
				d.off(float64(got), v, add)
			}
			if may != nil && d.wrong == "" {
				d.wrong = may.wrong(n, k, float64(got), v+add, flag(zero, k))
			}
		}
	}
	return d, nil
}

// off counts a value that differs from the image's.
func (d *difference) off(got, v, add float64) {
	err := got - add - v
	d.noise += float64(err * err)
	d.changed++
	if got == 0 && v+add != 0 {
		d.zerosAdded++
	}
}

// special counts a value that is not finite on one side or on both.
func (d *difference) special(p *pair, a, b int) {
	d.nonFinite++
	if p.aValues == nil && p.f.Elem(p.a.Data, a) != p.f.Elem(p.b.Data, b) {
		d.spread++
	}
}

func (p *pair) decodeRow(dst []float32, t weights.Tensor, n int) {
	size := p.cols * p.f.Bits / 8
	p.f.Decode(dst, t.Data[n*size:(n+1)*size])
}

// moved reports whether every element of the output has the bytes of the image's element. It is for types that cannot
// be decoded. For an image with signs or powers of two it returns false.
func (p *pair) moved(im *image) bool {
	if im.rowFlip != nil || im.colFlip != nil || im.rowExp != nil || im.colExp != nil || p.a.DType.Bits()%8 != 0 {
		return false
	}
	size := p.a.DType.Bits() / 8
	elem := func(data []byte, n, k int) []byte {
		at := (n*p.cols + k) * size
		return data[at : at+size]
	}
	for n := range p.rows {
		for k := range p.cols {
			if !bytes.Equal(elem(p.b.Data, n, k), elem(p.a.Data, place(im.row, n), place(im.col, k))) {
				return false
			}
		}
	}
	return true
}

// inputs returns the length of the input axis.
func (p *pair) inputs() int {
	if p.inputRows {
		return p.rows
	}
	return p.cols
}

// input returns the number of the input of element [n, k].
func (p *pair) input(n, k int) int {
	if p.inputRows {
		return n
	}
	return k
}

func (p *pair) nonFinite() int {
	n, row := 0, make([]float32, p.cols)
	for r := range p.rows {
		p.decodeRow(row, p.a, r)
		for _, v := range row {
			if v-v != 0 {
				n++
			}
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

// summary counts the rows and columns that an image changes; nil if it changes none.
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
