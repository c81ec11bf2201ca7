package program

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Bands are ranges [first, end) of a result's rows, in ascending order, for measuring a large layer. nil stands for
// all rows. Bands require outputs as rows.
type Bands [][2]int

// rows returns the number of rows in the bands.
func (b Bands) rows() (n int) {
	for _, r := range b {
		n += r[1] - r[0]
	}
	return n
}

// of returns the bands; for nil, one band of all n rows.
func (b Bands) of(n int) Bands {
	if b == nil {
		return Bands{{0, n}}
	}
	return b
}

// find returns a row's place among the rows of the bands; -1 if the row is in no band.
func (b Bands) find(row int) int {
	if b == nil {
		return row
	}
	place := 0
	for _, r := range b {
		if row >= r[0] && row < r[1] {
			return place + row - r[0]
		}
		place += r[1] - r[0]
	}
	return -1
}

// StoredOf returns the rows of the bands as stored, without gaps; nil bands stand for all rows. Outputs must be rows.
// The caller must not change the bytes, which may lie in a mapped file. They stay valid after Release.
func (p *Program) StoredOf(ctx context.Context, bands Bands, workers int) ([]byte, error) {
	switch {
	case p.OutAxis == 1:
		return nil, weights.TensorErrorf(p.File(), p.Source.Name, "the rows are not outputs")
	case p.joint != nil && !p.joint.isAlone && p.joint.data != nil && (p.joint.bands == nil) == (bands == nil):
		return p.joint.data, nil
	case bands == nil && p.IsIdentity():
		return p.Source.ReadRows(nil, 0, p.Rows), nil
	}
	size := p.RowBytes()
	data := make([]byte, bands.of(p.Rows).rows()*size)
	rest := data
	for _, r := range bands.of(p.Rows) {
		part := rest[:(r[1]-r[0])*size]
		rest = rest[len(part):]
		err := parallel.Spans(ctx, r[1]-r[0], 16*p.blockRows(), workers, func(ctx context.Context, first, end int) error {
			return weights.Guard(p.File(), func() error {
				return p.EachBlock(ctx, r[0]+first, r[0]+end, func(b Block) { copy(part[(b.First-r[0])*size:], b.Data) })
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// outputsOf is Outputs for the rows of the bands, without gaps. workers is the number of goroutines for a whole
// layer.
func (p *Program) outputsOf(ctx context.Context, bands Bands, workers int) (sgemm.Matrix, error) {
	if bands == nil {
		return p.outputs(ctx, workers)
	}
	if p.OutAxis == 1 {
		return sgemm.Matrix{}, weights.TensorErrorf(p.File(), p.Source.Name, "the rows are not outputs")
	}
	m := sgemm.Dense(bands.rows(), p.Cols, nil)
	row := 0
	for _, r := range bands {
		err := p.EachValues(ctx, r[0], r[1], func(b Block, v []float32) {
			copy(m.Data[row*p.Cols:], v)
			row += b.Rows
		})
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// banded applies a chooser for all outputs to the outputs of bands. Neighbours in different bands do not affect each
// other.
type banded struct {
	rounding.Chooser
	bands Bands
	n     int // outputs of the whole layer
}

// Table implements [rounding.Tabulated].
func (c banded) Table(_, k int) (t rounding.Table, ok bool) {
	tabulated, ok := c.Chooser.(rounding.Tabulated)
	if !ok {
		return t, false
	}
	if t, ok = tabulated.Table(c.n, k); ok && t.Exponents != nil {
		all := t.Exponents
		t.Exponents = nil
		for _, r := range c.bands {
			t.Exponents = append(t.Exponents, all[r[0]:r[1]]...)
		}
	}
	return t, ok
}

// Begin implements [rounding.Chooser].
func (c banded) Begin(_, k int) (func(rounding.Column), error) {
	choose, err := c.Chooser.Begin(c.n, k)
	return func(all rounding.Column) {
		from := 0 // place of the band's first row among the rows of all bands
		for _, r := range c.bands {
			to := from + r[1] - r[0]
			first, end := max(from, all.N0), min(to, all.N0+len(all.T))
			if first < end {
				part := all
				part.N0, part.T = r[0]+first-from, all.T[first-all.N0:end-all.N0]
				choose(part)
			}
			from = to
		}
	}, err
}
