package profile

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// cells divide time into equal parts, in each of which power is taken to be constant. Times are seconds
// since the first began.
type cells struct {
	step float64
	n    int
}

// span is the mean of power over a stretch of time, as a row of weights on cells: head on the first, tail
// on the last, full on those between.
type span struct {
	first, last      int
	head, full, tail float64
}

// span of the stretch from a to b, and whether it lies within the cells.
func (c cells) span(a, b float64) (span, bool) {
	// A stretch that ends on a cell's edge does not reach into the next, rounding or not.
	const rounding = 1e-6
	if a < -rounding*c.step || b > (float64(c.n)+rounding)*c.step || b < a {
		return span{}, false
	}
	return c.clipped(a, b), true
}

// clipped is the span of a stretch that may reach beyond either end: power is taken to have been there what
// it is in the cell at that end.
func (c cells) clipped(a, b float64) span {
	const rounding = 1e-6
	x, y := a/c.step, b/c.step
	s := span{first: c.index(x + rounding), last: c.index(y - rounding)}
	if s.last <= s.first {
		s.last, s.head = s.first, 1
		return s
	}
	s.full = 1 / (y - x)
	s.head = (float64(s.first+1) - x) * s.full
	s.tail = (y - float64(s.last)) * s.full
	return s
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

// mean of a curve over the span; sum is the curve's running integral.
func (s span) mean(sum []float64) float64 {
	m := s.head * (sum[s.first+1] - sum[s.first])
	if s.last > s.first {
		m += s.full*(sum[s.last]-sum[s.first+1]) + s.tail*(sum[s.last+1]-sum[s.last])
	}
	return m
}

// into adds weight × spanᵀspan to a normal matrix.
func (s span) into(n *normal, weight float64) {
	for i := s.first; i <= s.last; i++ {
		w := weight * s.at(i)
		row := n.row(i)
		// Differences along the row: s.at(i), then full, then tail, then nothing.
		before := 0.0
		set := func(k int, v float64) {
			row[k-i] += w * (v - before)
			before = v
		}
		set(i, s.at(i))
		if i < s.last {
			if i+1 < s.last {
				set(i+1, s.full)
			}
			set(s.last, s.tail)
		}
		set(s.last+1, 0)
	}
}

// at is the weight on a cell of the span.
func (s span) at(i int) float64 {
	switch i {
	case s.first:
		return s.head
	case s.last:
		return s.tail
	}
	return s.full
}

// normal is the upper band of a symmetric matrix, row by row. While spans are added it holds differences
// along rows, so that a span costs its number of cells and not that squared.
type normal struct {
	n, band int // band is the number of diagonals above the main one
	data    []float64
}

func newNormal(n, band int) *normal {
	// One column more than the band, for the difference behind its end.
	return &normal{n, band, make([]float64, n*(band+2))}
}

func (m *normal) row(i int) []float64 { return m.data[i*(m.band+2) : (i+1)*(m.band+2)] }

// summed turns differences into the matrix.
func (m *normal) summed() {
	for i := range m.n {
		row := m.row(i)
		for k := 1; k < len(row); k++ {
			row[k] += row[k-1]
		}
	}
}

// plus is m + λ·o as BLAS has bands. The band of o is no wider than that of m.
func (m *normal) plus(lambda float64, o *normal) blas64.SymmetricBand {
	sum := make([]float64, m.n*(m.band+1))
	for i := range m.n {
		to := sum[i*(m.band+1) : (i+1)*(m.band+1)]
		copy(to, m.row(i))
		for k, v := range o.row(i)[:o.band+1] {
			if k < len(to) {
				to[k] += lambda * v
			}
		}
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
