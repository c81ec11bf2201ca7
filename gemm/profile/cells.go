package profile

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

// cells divide time into equal parts, in each of which power is taken to be constant. Times are seconds
// since the first began.
type cells struct {
	step float64
	n    int
}

// span is what a sensor makes of power, as a row of weights on cells from the first on: their sum is 1.
type span struct {
	first int
	share []float64
}

// last cell of the span.
func (s span) last() int { return s.first + len(s.share) - 1 }

// within says whether the stretch from a to b lies within the cells.
func (c cells) within(a, b float64) bool {
	// A stretch that ends on a cell's edge does not reach into the next, rounding or not.
	const rounding = 1e-6
	return a >= -rounding*c.step && b <= (float64(c.n)+rounding)*c.step && b >= a
}

// spanOf the mean over the stretch from a to b of what lags behind power: it follows a jump as 1−exp(−t/lag). Beyond
// either end power is taken to be what it is in the cell at that end.
func (c cells) spanOf(a, b, lag float64) span {
	const rounding, memory = 1e-6, 7 // lags, after which less than a thousandth is left
	first, last := c.index((a-memory*lag)/c.step+rounding), c.index(b/c.step-rounding)
	last = max(first, last)
	s := span{first, make([]float64, last-first+1)}
	before := 0.0
	for i := range s.share {
		until := 1.0
		if i < len(s.share)-1 {
			until = seen(c.step*float64(first+i+1), a, b, lag)
		}
		s.share[i] = until - before
		before = until
	}
	return s
}

// seen is the weight of all that was up to t.
func seen(t, a, b, lag float64) float64 {
	const moment = 1e-9 // seconds
	switch {
	case t >= b:
		return 1
	case b-a < moment:
		if lag < moment {
			return 0
		}
		return math.Exp((t - b) / lag)
	case lag < moment:
		return max(0, t-a) / (b - a)
	case t < a:
		return lag / (b - a) * (math.Exp((t-a)/lag) - math.Exp((t-b)/lag))
	}
	return (t - a + lag*(1-math.Exp((t-b)/lag))) / (b - a)
}

func (c cells) index(x float64) int { return min(c.n-1, max(0, int(math.Floor(x)))) }

// running are the integrals of a curve up to each cell's begin, in cells.
func running(p []float64) []float64 {
	sum := make([]float64, len(p)+1)
	for i, w := range p {
		sum[i+1] = sum[i] + w
	}
	return sum
}

// mean of a curve over the span.
func (s span) mean(p []float64) float64 { return floats.Dot(s.share, p[s.first:s.first+len(s.share)]) }

// into adds weight × spanᵀspan to a normal matrix.
func (s span) into(n *normal, weight float64) {
	for i, w := range s.share {
		floats.AddScaled(n.row(s.first + i)[:len(s.share)-i], weight*w, s.share[i:])
	}
}

// normal is the upper band of a symmetric matrix, row by row.
type normal struct {
	n, band int // band is the number of diagonals above the main one
	data    []float64
}

func newNormal(n, band int) *normal {
	return &normal{n, band, make([]float64, n*(band+1))}
}

func (m *normal) row(i int) []float64 { return m.data[i*(m.band+1) : (i+1)*(m.band+1)] }

// plus is m + λ·o as BLAS has bands. The band of o is no wider than that of m.
func (m *normal) plus(lambda float64, o *normal) blas64.SymmetricBand {
	sum := make([]float64, m.n*(m.band+1))
	for i := range m.n {
		to := sum[i*(m.band+1) : (i+1)*(m.band+1)]
		copy(to, m.row(i))
		floats.AddScaled(to[:o.band+1], lambda, o.row(i))
	}
	return blas64.SymmetricBand{Uplo: blas.Upper, N: m.n, K: m.band, Stride: m.band + 1, Data: sum}
}

// times is m·x.
func (m *normal) times(x []float64) []float64 {
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
