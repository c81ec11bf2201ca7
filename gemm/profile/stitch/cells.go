package stitch

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

// cells divides time into parts of equal length. Power is taken to be constant within a cell. Times are in seconds
// since the start of the first cell.
type cells struct {
	step float64
	n    int
}

// span is the averaging of one reading, as weights of consecutive cells. The weights add up to 1.
type span struct {
	first int
	share []float64
}

// last returns the span's last cell.
func (s span) last() int { return s.first + len(s.share) - 1 }

// within reports whether the interval from a to b lies within the cells.
func (c cells) within(a, b float64) bool {
	// Without this tolerance, rounding could extend an interval that ends on a cell's edge into the next cell.
	const rounding = 1e-6
	return a >= -rounding*c.step && b <= (float64(c.n)+rounding)*c.step && b >= a
}

// spanOf returns the weights of a reading: the mean, from a to b, of power behind a first-order filter with the step
// response 1−exp(−t/τ). Power before the first cell and after the last cell is assumed to equal that cell's power.
func (c cells) spanOf(a, b, tau float64) span {
	const rounding, memory = 1e-6, 7 // memory is in time constants; less than a thousandth remains after it
	first, last := c.index((a-memory*tau)/c.step+rounding), c.index(b/c.step-rounding)
	last = max(first, last)
	s := span{first, make([]float64, last-first+1)}
	before := 0.0
	for i := range s.share {
		until := 1.0
		if i < len(s.share)-1 {
			until = weightBefore(c.step*float64(first+i+1), a, b, tau)
		}
		s.share[i] = until - before
		before = until
	}
	return s
}

// weightBefore returns the weight of all power before t in the filtered mean from a to b.
func weightBefore(t, a, b, tau float64) float64 {
	const moment = 1e-9 // seconds
	switch {
	case t >= b:
		return 1
	case b-a < moment:
		if tau < moment {
			return 0
		}
		return math.Exp((t - b) / tau)
	case tau < moment:
		return max(0, t-a) / (b - a)
	case t < a:
		return tau / (b - a) * (math.Exp((t-a)/tau) - math.Exp((t-b)/tau))
	}
	return (t - a + tau*(1-math.Exp((t-b)/tau))) / (b - a)
}

func (c cells) index(x float64) int { return min(c.n-1, max(0, int(math.Floor(x)))) }

// mean returns the mean of a trace over the span.
func (s span) mean(watts []float64) float64 {
	return floats.Dot(s.share, watts[s.first:s.first+len(s.share)])
}

// into adds weight × spanᵀspan to a normal matrix.
func (s span) into(n *banded, weight float64) {
	for i, w := range s.share {
		floats.AddScaled(n.row(s.first + i)[:len(s.share)-i], weight*w, s.share[i:])
	}
}

// banded is a symmetric band matrix: its upper band, row by row.
type banded struct {
	n, band int // band is the number of diagonals above the main one
	data    []float64
}

func newBanded(n, band int) *banded {
	return &banded{n, band, make([]float64, n*(band+1))}
}

func (m *banded) row(i int) []float64 { return m.data[i*(m.band+1) : (i+1)*(m.band+1)] }

// plus returns m + λ·o in BLAS's band format. The band of o must not be wider than that of m.
func (m *banded) plus(lambda float64, o *banded) blas64.SymmetricBand {
	sum := make([]float64, m.n*(m.band+1))
	for i := range m.n {
		to := sum[i*(m.band+1) : (i+1)*(m.band+1)]
		copy(to, m.row(i))
		floats.AddScaled(to[:o.band+1], lambda, o.row(i))
	}
	return blas64.SymmetricBand{Uplo: blas.Upper, N: m.n, K: m.band, Stride: m.band + 1, Data: sum}
}

// times returns m·x.
func (m *banded) times(x []float64) []float64 {
	y := make([]float64, m.n)
	for i := range m.n {
		row := m.row(i)
		y[i] += row[0] * x[i]
		for k := 1; k <= m.band && i+k < m.n; k++ {
			y[i] += row[k] * x[i+k]
			y[i+k] += row[k] * x[i]
		}
	}
	return y
}
