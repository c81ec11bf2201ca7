package rounding

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Options are the options of [Round].
type Options struct {
	Zero    int // number of columns, from the beginning of the order of rounding, that become zero
	Workers int // largest number of goroutines; 0: all processors
}

// chunkRows is the number of rows of W that one worker rounds together. Rows in different chunks do not affect each
// other. The number is fixed, because results must not depend on the number of workers.
const chunkRows = 256

// Round chooses values for w[N,K], column by column in f's order, and feeds each column's error back into later
// columns. A weight keeps its value if the weight or its target is not finite. Round panics if shapes do not fit. It
// returns c's error if c's parameters are wrong, or ctx's error.
func Round(ctx context.Context, w sgemm.Matrix, f *Factor, c Chooser, o Options) (q sgemm.Matrix, err error) {
	if f == nil || c == nil {
		return q, errors.New("rounding: a factor and a chooser are needed")
	}
	if len(f.Order) != w.Cols || len(f.D) != w.Cols || o.Zero < 0 || o.Zero > w.Cols {
		panic(fmt.Sprintf("rounding: w of %d×%d, a factor of %d columns, %d of them zero, do not fit",
			w.Rows, w.Cols, len(f.Order), o.Zero))
	}
	if _, err := c.Begin(w.Rows, w.Cols); err != nil {
		return sgemm.Matrix{}, err
	}
	q = sgemm.Dense(w.Rows, w.Cols, nil)
	err = parallel.Spans(ctx, w.Rows, chunkRows, o.Workers, func(ctx context.Context, n0, n1 int) error {
		choose, err := c.Begin(w.Rows, w.Cols)
		if err != nil {
			return err
		}
		r := newRows(w.Slice(n0, n1, 0, w.Cols), f, choose)
		r.n0, r.zero = n0, o.Zero
		if err := r.decide(ctx, 0, w.Cols); err != nil {
			return err
		}
		scatter(q.Slice(n0, n1, 0, w.Cols), r.values, f.Order)
		return nil
	})
	if err != nil {
		return sgemm.Matrix{}, err
	}
	return q, nil
}

// rows is the state of a chunk of w's rows. Its matrices are transposed, [K, rows], in the order of rounding, so that
// a column of W is contiguous.
type rows struct {
	*Factor
	choose   func(Column)
	n0, zero int
	values   sgemm.Matrix // values of rounded columns; partial targets of the other columns
	errors   sgemm.Matrix // w − ŵ for rounded columns; w for the other columns
	aside    []ownValue   // weights of the current column that keep their value
}

func newRows(w sgemm.Matrix, f *Factor, choose func(Column)) *rows {
	r := &rows{Factor: f, choose: choose, errors: gather(w, f.Order)}
	r.values = sgemm.Dense(w.Cols, w.Rows, append([]float32(nil), r.errors.Data...))
	return r
}

// leafCols is the largest number of columns for which feedback column by column is cheaper than a product.
const leafCols = 16

// decide rounds columns k0 to k1. It rounds the first half, applies the feedback to the second half as one product,
// and then rounds the second half. Every target is one chain of sums over the columns before it, in order.
func (r *rows) decide(ctx context.Context, k0, k1 int) error {
	if r.U.Data == nil || k1-k0 <= leafCols {
		for k := k0; k < k1; k++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.feed(k0, k)
			r.column(k)
		}
		return nil
	}
	mid := k0 + (k1-k0+2*leafCols-1)/(2*leafCols)*leafCols
	if err := r.decide(ctx, k0, mid); err != nil {
		return err
	}
	n := r.values.Cols
	err := sgemm.Mul(ctx, r.values.Slice(mid, k1, 0, n), r.U.Slice(k0, mid, mid, k1), r.errors.Slice(k0, mid, 0, n),
		sgemm.Op{TransA: true, Add: true, Workers: 1})
	if err != nil {
		return err
	}
	return r.decide(ctx, mid, k1)
}

// feed adds the feedback of columns k0 to k to column k's target.
func (r *rows) feed(k0, k int) {
	if r.U.Data == nil {
		return
	}
	t := r.values.Row(k)
	j := k0
	for ; j+4 <= k; j += 4 {
		u0, u1, u2, u3 := r.U.Row(j)[k], r.U.Row(j + 1)[k], r.U.Row(j + 2)[k], r.U.Row(j + 3)[k]
		e0, e1 := r.errors.Row(j)[:len(t)], r.errors.Row(j + 1)[:len(t)]
		e2, e3 := r.errors.Row(j + 2)[:len(t)], r.errors.Row(j + 3)[:len(t)]
		for n := range t {
			// The conversions prevent fusing, for equal results on all machines.
			t[n] = t[n] + float32(e0[n]*u0) + float32(e1[n]*u1) + float32(e2[n]*u2) + float32(e3[n]*u3)
		}
	}
	for ; j < k; j++ {
		u := r.U.Row(j)[k]
		for n, e := range r.errors.Row(j)[:len(t)] {
			t[n] += float32(e * u)
		}
	}
}

// column rounds column k, whose targets are complete.
func (r *rows) column(k int) {
	t, e := r.values.Row(k), r.errors.Row(k)
	r.setAside(t, e)
	if k < r.zero {
		clear(t)
	} else {
		r.choose(Column{K: r.Order[k], D: r.D[k], N0: r.n0, T: t})
	}
	for n, v := range t[:len(e)] {
		e[n] -= v
	}
	for _, own := range r.aside {
		t[own.n], e[own.n] = own.w, 0
	}
}

// setAside replaces targets that are not finite by zeros, and records the weights that keep their value.
func (r *rows) setAside(t, e []float32) {
	const infinite = 0x7F800000
	r.aside = r.aside[:0]
	var largest uint32
	for _, v := range t {
		largest = max(largest, math.Float32bits(v)&^(1<<31))
	}
	if largest < infinite {
		return
	}
	for n, v := range t {
		if math.Float32bits(v)&infinite == infinite {
			r.aside = append(r.aside, ownValue{n, e[n]})
			t[n], e[n] = 0, 0
		}
	}
}

// ownValue is a weight that keeps its value, in row n of the chunk.
type ownValue struct {
	n int
	w float32
}

// transposeRows is the number of rows that are read at the same time, so that writes fill whole cache lines.
const transposeRows = 16

// gather returns w transposed, with its columns in the given order.
func gather(w sgemm.Matrix, order []int) sgemm.Matrix {
	t := sgemm.Dense(w.Cols, w.Rows, nil)
	for n0 := 0; n0 < w.Rows; n0 += transposeRows {
		n1 := min(n0+transposeRows, w.Rows)
		for i, k := range order {
			to := t.Row(i)[n0:n1]
			for n := range to {
				to[n] = w.Data[(n0+n)*w.Stride+k]
			}
		}
	}
	return t
}

// scatter is the inverse of gather; it writes to q.
func scatter(q, t sgemm.Matrix, order []int) {
	for n0 := 0; n0 < q.Rows; n0 += transposeRows {
		n1 := min(n0+transposeRows, q.Rows)
		for i, k := range order {
			for n, v := range t.Row(i)[n0:n1] {
				q.Data[(n0+n)*q.Stride+k] = v
			}
		}
	}
}
