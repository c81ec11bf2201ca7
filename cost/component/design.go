package component

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/lowtoggle/lowtoggle/cost/nnls"
)

const (
	// ridge avoids extreme coefficients of correlated terms.
	ridge     = 1e-5
	resamples = 200
)

// design is the least-squares problem: a row for every reading of the card's power, and one for every reading of the
// memory's power.
type design struct {
	exponent float64
	x        *mat.Dense // each column has a root mean square of 1
	scale    []float64  // divisor of each column
	y        []float64
	names    []string // kernels of the rows
	sensor   []bool   // rows of the memory's power
}

func (m *Model) design(exponent float64) *design {
	d := &design{exponent: exponent}
	scale := m.Facts.SensorScale
	var rows []float64
	for i := range m.Readings {
		r := &m.Readings[i]
		if r.HeldOut {
			continue
		}
		clock := r.Clock / m.FullClock
		for j := range m.terms {
			rows = append(rows, m.terms[j].at(&r.Kernel, clock, exponent)/r.Watts)
		}
		rows = append(rows, 0) // the sensor's offset is not part of the card's power
		d.y, d.names, d.sensor = append(d.y, 1), append(d.names, r.Name), append(d.sensor, false)
		if !m.Sensed || r.MemoryWatts == nil {
			continue
		}
		for j := range m.terms {
			v := 0.0
			if m.terms[j].part == HBM {
				v = m.terms[j].at(&r.Kernel, clock, exponent) / scale
			}
			rows = append(rows, v)
		}
		rows = append(rows, 1/scale)
		d.y, d.names, d.sensor = append(d.y, *r.MemoryWatts/scale), append(d.names, r.Name), append(d.sensor, true)
	}
	d.x = mat.NewDense(len(d.y), len(m.terms)+1, rows)
	d.unit()
	return d
}

// unit scales columns to a root mean square of 1, so that coefficients are shares of the power.
func (d *design) unit() {
	n, columns := d.x.Dims()
	for j := range columns {
		s := mat.Norm(d.x.ColView(j), 2) / math.Sqrt(float64(n))
		if s == 0 {
			s = 1
		}
		d.scale = append(d.scale, s)
		for i := range n {
			d.x.Set(i, j, d.x.At(i, j)/s)
		}
	}
}

// solve fits y with all rows except those of the kernels for which without is true.
func (d *design) solve(y []float64, without func(kernel string) bool) variant {
	_, columns := d.x.Dims()
	var rows, wanted []float64
	for i, name := range d.names {
		if without == nil || !without(name) {
			rows, wanted = append(rows, d.x.RawRowView(i)...), append(wanted, y[i])
		}
	}
	v := variant{d.exponent, nnls.SolveActive(mat.NewDense(len(wanted), columns, rows), wanted, ridge, make([]float64, columns))}
	for j := range v.coefficients {
		v.coefficients[j] /= d.scale[j]
	}
	return v
}

// resampled returns the fits of a bootstrap of residuals. Each fit is to the model's predictions plus residuals drawn
// from rows of the same kind, because errors of the card's power and of the memory's power differ in size.
func (d *design) resampled(v variant) (list []variant) {
	n, columns := d.x.Dims()
	scaled := make([]float64, columns)
	for j := range scaled {
		scaled[j] = v.coefficients[j] * d.scale[j]
	}
	var fit mat.VecDense
	fit.MulVec(d.x, mat.NewVecDense(columns, scaled))
	used := 0.0 // one degree of freedom for each coefficient that is not 0
	for _, c := range scaled {
		used += truth(c > 0)
	}
	wider := math.Sqrt(float64(n) / max(1, float64(n)-used))
	alike := map[bool][]int{}
	for i, sensor := range d.sensor {
		alike[sensor] = append(alike[sensor], i)
	}
	draw := rand.New(rand.NewPCG(1, 1))
	for range resamples {
		y := make([]float64, n)
		for i := range y {
			kind := alike[d.sensor[i]]
			from := kind[draw.IntN(len(kind))]
			y[i] = fit.AtVec(i) + float64(wider*(d.y[from]-fit.AtVec(from)))
		}
		list = append(list, d.solve(y, nil))
	}
	return list
}

// unbounded returns the standard errors that coefficients would have if they could be negative, from v's residuals.
// For a coefficient of 0 this is the only error, because resampling leaves it at 0.
func (d *design) unbounded(v variant) []float64 {
	n, columns := d.x.Dims()
	errs := make([]float64, columns)
	inverse := d.inverse()
	if inverse == nil {
		return errs
	}
	used := 0.0
	for _, c := range v.coefficients {
		used += truth(c > 0)
	}
	squares, rows := map[bool]float64{}, map[bool]float64{} // by kind of row
	for i, sensor := range d.sensor {
		off := d.y[i]
		for j, c := range v.coefficients {
			off -= float64(d.x.At(i, j) * c * d.scale[j])
		}
		squares[sensor] += float64(off * off)
		rows[sensor]++
	}
	freedom := max(1, float64(n)-used) / float64(n)
	var moved mat.VecDense // changes of the coefficients if one row is off by 1
	for i, sensor := range d.sensor {
		moved.MulVec(inverse, mat.NewVecDense(columns, d.x.RawRowView(i)))
		for j := range errs {
			errs[j] += float64(squares[sensor] / (freedom * rows[sensor]) * moved.AtVec(j) * moved.AtVec(j))
		}
	}
	for j := range errs {
		errs[j] = math.Sqrt(errs[j]) / d.scale[j]
	}
	return errs
}

// inverse returns the inverse of the normal matrix with the ridge.
func (d *design) inverse() *mat.SymDense {
	n, columns := d.x.Dims()
	var gram mat.SymDense
	gram.SymOuterK(1, d.x.T())
	for j := range columns {
		gram.SetSym(j, j, gram.At(j, j)+float64(ridge*float64(n)))
	}
	var inverse mat.SymDense
	var c mat.Cholesky
	if !c.Factorize(&gram) || c.InverseTo(&inverse) != nil {
		return nil // impossible, because the ridge makes the matrix positive definite
	}
	return &inverse
}

// leverage returns, for each kernel, the largest weight of its own reading in its prediction, from 0 to 1.
func (d *design) leverage() map[string]float64 {
	_, columns := d.x.Dims()
	inverse := d.inverse()
	if inverse == nil {
		return nil
	}
	most := map[string]float64{}
	for i, name := range d.names {
		row := mat.NewVecDense(columns, d.x.RawRowView(i))
		most[name] = max(most[name], mat.Inner(row, inverse, row))
	}
	return most
}
