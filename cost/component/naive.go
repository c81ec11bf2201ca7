package component

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/lowtoggle/lowtoggle/cost/nnls"
	"github.com/lowtoggle/lowtoggle/internal/powercap"
)

// naive are models without components. Each is a sum of a few features, fitted to the same readings.
var naive = []struct {
	name     string
	features func(m *Model, k *Kernel) []float64
}{
	{"constant", func(*Model, *Kernel) []float64 { return []float64{1} }},
	{"power by duty", func(m *Model, k *Kernel) []float64 { return []float64{1, busyShare(k, m.Launch) * truth(k.Awake > 0)} }},
	{"power by utilisation", func(m *Model, k *Kernel) []float64 {
		rate := func(name string, amount float64) float64 {
			if m.Rates[name] <= 0 {
				return 0
			}
			return perSecond(k, amount) / m.Rates[name]
		}
		return []float64{1, busyShare(k, m.Launch) * k.Awake, rate(k.Type.String(), k.Ops), rate("memory", k.Memory)}
	}},
}

// NaiveNames returns the names of the models for comparison. Components must have at most half the error of the first
// two, which are naive. The inputs of power by utilisation are the share of multiprocessors in use, and the rates of
// operations and memory relative to the highest ones, as a monitor's counters report them.
func NaiveNames() (names []string) {
	for _, n := range naive {
		names = append(names, n.name)
	}
	return names
}

// mustBeat is the number of naive models with at least twice the model's error.
const mustBeat = 2

// fitNaive fits each naive model to the fit's readings in the span, without one kernel. It returns nil if there are
// too few readings.
func (m *Model) fitNaive(without string) (coefficients [][]float64) {
	for _, n := range naive {
		columns := len(n.features(m, &Kernel{}))
		var rows, wanted []float64
		for i := range m.Readings {
			r := &m.Readings[i]
			if r.HeldOut || r.Name == without || !m.spans(r) {
				continue
			}
			for _, v := range n.features(m, &r.Kernel) {
				rows = append(rows, v/r.Watts)
			}
			wanted = append(wanted, 1)
		}
		if len(wanted) < columns {
			return nil
		}
		d := &design{x: mat.NewDense(len(wanted), columns, rows)}
		d.unit()
		const little = 1e-9 // ridge for columns that do not vary
		c := nnls.SolveActive(d.x, wanted, little, make([]float64, columns))
		for j := range c {
			c[j] /= d.scale[j]
		}
		coefficients = append(coefficients, c)
	}
	return coefficients
}

// naively predicts a kernel's watts by the fitted naive models.
func (m *Model) naively(k *Kernel, coefficients [][]float64) (watts []float64) {
	for i, c := range coefficients {
		sum := 0.0
		for j, v := range naive[i].features(m, k) {
			sum += float64(c[j] * v)
		}
		watts = append(watts, sum)
	}
	return watts
}

// span returns the range of power in watts in which the model is compared with naive ones: 150 to 690 W for a power
// limit of 700 W. At the limit all kernels draw the same power, so every constant would be right.
func (m *Model) span() (lowest, highest float64) {
	return m.PowerLimit * 3 / 14, m.PowerLimit * 69 / 70
}

// spans reports whether a reading lies between these watts and was not at the power cap.
func (m *Model) spans(r *Reading) bool {
	lowest, highest := m.span()
	return r.Watts >= lowest && r.Watts <= highest && !m.atCap(r)
}

// atCap reports whether a reading was at the power cap.
func (m *Model) atCap(r *Reading) bool { return m.slowed(r) && powercap.Near(r.Watts, m.PowerLimit) }

// slowed reports whether the card lowered its clock for a reading.
func (m *Model) slowed(r *Reading) bool {
	return r.Capped != nil && *r.Capped >= powercap.Often && powercap.Slow(r.Clock, m.FullClock)
}

// Span compares the model with naive models on unseen kernels below the power cap.
type Span struct {
	Low     float64 `json:"low_watts"`
	High    float64 `json:"high_watts"`
	Kernels int     `json:"kernels"`
	// Least and Most are the least and the highest power of these kernels, in watts.
	Least float64 `json:"least_watts"`
	Most  float64 `json:"most_watts"`
	Mean  float64 `json:"mean_error"`
	Worst float64 `json:"worst_error"`
	// Naive are the mean errors of the models in [NaiveNames], in their order.
	Naive []float64 `json:"naive_mean_errors"`
}

// BestNaive returns the least error of the naive models.
func (s *Span) BestNaive() float64 {
	best := math.Inf(1)
	for _, e := range s.Naive[:min(mustBeat, len(s.Naive))] {
		best = min(best, e)
	}
	return best
}

// add adds a kernel to the means.
func (s *Span) add(p *Prediction) {
	n := float64(s.Kernels)
	if s.Kernels++; s.Naive == nil {
		s.Naive = make([]float64, len(p.Naive))
		s.Least = p.Reading.Watts
	}
	s.Least, s.Most = min(s.Least, p.Reading.Watts), max(s.Most, p.Reading.Watts)
	s.Mean = (float64(s.Mean*n) + p.Off()) / (n + 1)
	s.Worst = max(s.Worst, p.Off())
	for i, w := range p.Naive {
		s.Naive[i] = (float64(s.Naive[i]*n) + math.Abs(w/p.Reading.Watts-1)) / (n + 1)
	}
}
