package transform

import (
	"context"

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
	if u.allSigned() {
		return u
	}
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

// allSigned reports whether all positions take signs and scales.
func (u *use) allSigned() bool {
	if u.dir == nil {
		return false
	}
	for _, list := range u.positions {
		for _, pos := range list {
			if u.dir[pos] == 0 {
				return false
			}
		}
	}
	return true
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
	if !u.blocks() {
		return u.positions, u.positions
	}
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

// bySign parts a use into the positions that may be given signs and the others; nil where there are none.
func (u *use) bySign(signs bool) (signed, plain *use) {
	if !signs || u.dir == nil {
		return nil, u
	}
	if u.allSigned() {
		return u, nil
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
