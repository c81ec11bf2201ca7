package verify

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// line is the part of an image on one axis: the source's position, sign and exponent of each row or column of the
// output. Nil fields have no effect.
type line struct {
	from []int
	flip []bool
	exp  []int
}

func (l line) moves() bool { return l.from != nil || l.flip != nil || l.exp != nil }

// line returns the claimed changes along one dimension.
func (c *claims) line(a *arch.Axis) line {
	l := line{
		from: a.Gather(func(n string) []int { return c.perm[n] }),
		flip: a.Signs(func(n string) []bool { return c.flip[n] }),
		exp:  a.Exps(func(n string) []int { return c.exp[n] }),
	}
	if l.from != nil { // signs and exponents are by source position
		l.flip, l.exp = follow(l.flip, l.from), follow(l.exp, l.from)
	}
	return l
}

func follow[T any](list []T, from []int) []T {
	if list == nil {
		return nil
	}
	moved := make([]T, len(from))
	for i, j := range from {
		moved[i] = list[j]
	}
	return moved
}

// rows returns the claimed changes along several dimensions that together number the rows. The last dimension varies
// fastest.
func (c *claims) rows(axes []*arch.Axis) line {
	var parts []line
	length := 1
	for _, a := range axes {
		parts, length = append(parts, c.line(a)), length*a.Len()
	}
	if len(parts) == 1 {
		return parts[0]
	}
	var all line
	if slices.ContainsFunc(parts, func(l line) bool { return l.from != nil }) {
		all.from = make([]int, length)
	}
	if slices.ContainsFunc(parts, func(l line) bool { return l.flip != nil }) {
		all.flip = make([]bool, length)
	}
	if slices.ContainsFunc(parts, func(l line) bool { return l.exp != nil }) {
		all.exp = make([]int, length)
	}
	for row := range length {
		rest, stride := row, 1
		for i := len(parts) - 1; i >= 0; i-- {
			n := axes[i].Len()
			all.add(row, parts[i], rest%n, stride)
			rest, stride = rest/n, stride*n
		}
	}
	return all
}

// add adds part's change at place i of one dimension, of the given stride, to a row.
func (l line) add(row int, part line, i, stride int) {
	if l.from != nil {
		l.from[row] += stride * place(part.from, i)
	}
	if l.flip != nil {
		l.flip[row] = l.flip[row] != flag(part.flip, i)
	}
	if l.exp != nil {
		l.exp[row] += number(part.exp, i)
	}
}
