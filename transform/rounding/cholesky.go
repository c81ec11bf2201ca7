package rounding

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// A panel is factorised by columns in float64. Products in float32 update the columns before the panel.
const (
	panelCols  = 64
	panelRows  = 64  // rows of a panel that one worker updates at a time
	updateCols = 256 // columns of the triangle: in narrow strips, little is computed below the diagonal
)

// Thresholds of a pivot, as shares of its diagonal element. A pivot below noise cannot be told from zero, because
// products are in float32. A pivot below -indefinite is negative for another reason than rounding errors.
const (
	noise      = 1e-5
	indefinite = 1e-3
)

// factorise computes a + damp·I = U D Uᵀ. It reads the upper triangle of a and replaces it by U, with a unit diagonal
// and zeros below the diagonal. d holds a's diagonal, and D at the end. The method is the blocked, right-looking
// Cholesky factorisation, from the last column to the first.
func factorise(ctx context.Context, a sgemm.Matrix, d []float64, damp float64, workers int) error {
	k := a.Rows
	minusY := sgemm.Dense(k, panelCols, nil)
	for p1 := k; p1 > 0; p1 -= min(p1, panelCols) {
		p0 := max(0, p1-panelCols)
		p := newPanel(a, d, p0, p1)
		if err := p.corner(damp); err != nil {
			return err
		}
		y := minusY.Slice(0, p0, 0, p1-p0)
		err := parallel.Spans(ctx, p0, panelRows, workers, func(ctx context.Context, first, end int) error {
			p.solve(y, first, end)
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		u := a.Slice(0, p0, p0, p1)
		for j0 := 0; j0 < p0; j0 += updateCols {
			j1 := min(j0+updateCols, p0)
			err := sgemm.Mul(ctx, a.Slice(0, j1, j0, j1), y.Slice(0, j1, 0, p1-p0), u.Slice(j0, j1, 0, p1-p0),
				sgemm.Op{TransB: true, Add: true, Workers: workers})
			if err != nil {
				return err
			}
		}
	}
	for i := range k {
		clear(a.Row(i)[:i])
		a.Row(i)[i] = 1
	}
	return nil
}

// panel is the columns p0 to p1 of a while they are factorised.
type panel struct {
	a      sgemm.Matrix
	d      []float64 // of the panel's columns
	p0, p1 int
	u      [panelCols][panelCols]float64 // U's block on the diagonal, without the unit diagonal
}

func newPanel(a sgemm.Matrix, d []float64, p0, p1 int) *panel {
	return &panel{a: a, d: d[p0:p1], p0: p0, p1: p1}
}

// substitute turns columns from k on of a row of the panel into y = u·D: Σ_{m≥k} y_m U_km = a_k.
func (p *panel) substitute(y []float64, from int) {
	for k := len(p.d) - 1; k >= from; k-- {
		u := p.u[k][k+1 : len(p.d)]
		var s0, s1 float64 // two sums, so that additions overlap
		rest := y[k+1:][:len(u)]
		for len(u) >= 2 {
			s0 += float64(u[0] * rest[0])
			s1 += float64(u[1] * rest[1])
			u, rest = u[2:], rest[2:]
		}
		if len(u) > 0 {
			s0 += float64(u[0] * rest[0])
		}
		y[k] -= s0 + s1
	}
}

// corner factorises the block on the diagonal, from its last row to its first.
func (p *panel) corner(damp float64) error {
	var buf [panelCols]float64
	y := buf[:len(p.d)]
	for r := len(p.d) - 1; r >= 0; r-- {
		row := p.a.Row(p.p0 + r)[p.p0:p.p1]
		for k := r; k < len(y); k++ {
			y[k] = float64(row[k])
		}
		p.substitute(y, r+1)
		d := y[r] + damp
		for k := r + 1; k < len(y); k++ {
			u := y[k] / p.d[k]
			d -= float64(u * y[k])
			p.u[r][k], row[k] = u, float32(u)
		}
		if d < -indefinite*p.d[r] {
			return NotSemidefinite(d, damp)
		}
		// In a positive semidefinite matrix no pivot is smaller than the damping. A pivot of pure rounding noise
		// would amplify the noise.
		p.d[r] = max(d, damp, noise*p.d[r])
	}
	return nil
}

// solve computes rows r0 to r1 of U, and writes −U·D to minusY.
func (p *panel) solve(minusY sgemm.Matrix, r0, r1 int) {
	var buf [panelCols]float64
	y := buf[:len(p.d)]
	for r := r0; r < r1; r++ {
		row, out := p.a.Row(r)[p.p0:p.p1], minusY.Row(r)
		for k, v := range row {
			y[k] = float64(v)
		}
		p.substitute(y, 0)
		for k := range row {
			row[k], out[k] = float32(y[k]/p.d[k]), float32(-y[k])
		}
	}
}
