package component

import (
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

const (
	fewReadings = 8
	// mostLeverage of a kernel that is left out to be judged: beyond it there is a coefficient that no
	// other kernel tells.
	mostLeverage = 0.8
	// mostReadings is many times what a calibration takes; each kernel is left out once, which takes their square.
	mostReadings          = 2000
	leastWatts, mostWatts = 1e-3, 1e5
	mostMHz               = 1e5
)

// Fit finds the coefficients, their errors and the model's quality from m.Readings. FullClock,
// PowerLimit and Card are to be there.
func (m *Model) Fit() error {
	if err := m.validateReadings(); err != nil {
		return err
	}
	m.Version = version
	m.Sensed = m.sensed()
	m.Launch = m.launch()
	m.terms = terms(m.Types(), m.Sensed, m.Launch)
	m.limits()
	exponent := m.Facts.Clock.Exponent
	d := m.design(exponent.Usual)
	own := d.solve(d.y, nil)
	m.variants = []variant{own}
	m.variants = append(m.variants, d.resampled(own)...)
	for _, e := range []float64{exponent.Low, exponent.High} {
		other := m.design(e)
		m.variants = append(m.variants, other.solve(other.y, nil))
	}
	m.Quality = m.judged(d)
	m.Coefficients = nil
	unbounded := d.unbounded(own)
	for j, t := range m.terms {
		of := func(v variant) float64 { return v.coefficients[j] }
		c := Coefficient{t.name, t.part, of(own), m.deviation(of), t.unit}
		if c.Value == 0 {
			c.Error = max(c.Error, unbounded[j])
		}
		m.Coefficients = append(m.Coefficients, c)
	}
	if m.Sensed {
		of := func(v variant) float64 { return v.coefficients[len(m.terms)] }
		m.Coefficients = append(m.Coefficients, Coefficient{sensorTerm, "", of(own), m.deviation(of), "W"})
	}
	return nil
}

func (m *Model) validateReadings() error {
	if err := m.Facts.validate(); err != nil {
		return err
	}
	if !(m.FullClock > 0 && m.FullClock <= mostMHz && m.PowerLimit >= 0 && m.PowerLimit <= mostWatts) || m.Card == "" {
		return fmt.Errorf("components take the card's name, its highest clock, up to %.0f MHz, and its power limit, up to %.0f W", mostMHz, mostWatts)
	}
	if len(m.Readings) > mostReadings {
		return fmt.Errorf("%d readings are more than components are fitted to, %d are the most", len(m.Readings), mostReadings)
	}
	n := 0
	for _, r := range m.Readings {
		if err := r.Validate(); err != nil {
			return err
		}
		if err := m.possible(&r); err != nil {
			return err
		}
		if !r.HeldOut {
			n++
		}
	}
	if n < fewReadings {
		return fmt.Errorf("%d kernels are too few to tell components apart, %d are the least: let lowtoggle calibrate --components come to its end", n, fewReadings)
	}
	for _, t := range m.Types() {
		if !m.varied(t) {
			return fmt.Errorf("all kernels of %s have the same operands, which does not tell what they take from what their bits do: measure others", t)
		}
	}
	return nil
}

// possible reports readings that no card gives, and that no sum would survive.
func (m *Model) possible(r *Reading) error {
	or0 := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	work := max(r.Ops, r.Asked, r.Memory, r.Again)
	for _, v := range []struct {
		what             string
		value, low, high float64
	}{
		{"watts", r.Watts, leastWatts, mostWatts},
		{"watts of its memory", or0(r.MemoryWatts), 0, mostWatts},
		{"capped share", or0(r.Capped), 0, 1},
		{"seconds", r.Seconds, 1e-12, 3600},                     // simulated ones are short
		{"MHz", r.Clock, m.FullClock / 100, 1.01 * m.FullClock}, // a mean may round up
		{"operations or bytes a second,", perSecond(&r.Kernel, work), 0, 1e20},
		{"toggling of bits,", max(r.Bits, r.Moved), 0, 100},
		{"share of multiprocessors awake,", r.Awake, 0, 1},
	} {
		if !(v.value >= v.low && v.value <= v.high) {
			return fmt.Errorf("%s is no measurement: %s of %g, where %g to %g can be", r.Name, v.what, v.value, v.low, v.high)
		}
	}
	return nil
}

// varied says whether operands of a type's kernels differ in what their bits do.
func (m *Model) varied(typ arith.Type) bool {
	low, high := math.Inf(1), 0.0
	for _, r := range m.Readings {
		if r.Type == typ && !r.HeldOut {
			low, high = min(low, r.Bits), max(high, r.Bits)
		}
	}
	const enough = 0.2
	return high-low >= enough
}

// fitted kernels, each once.
func (m *Model) fitted() (names []string) {
	for _, r := range m.Readings {
		if !r.HeldOut && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

// sensed is whether the memory's sensor answered, and for kernels that differ in what they ask of it.
func (m *Model) sensed() bool {
	quiet, busy := false, false
	for _, r := range m.Readings {
		if r.MemoryWatts != nil && !r.HeldOut {
			quiet, busy = quiet || r.Memory == 0, busy || r.Memory > 0
		}
	}
	return quiet && busy
}

// launch is the shortest time of an execution that does nothing; 0: there is none.
func (m *Model) launch() (shortest float64) {
	for _, r := range m.Readings {
		if idle := r.Awake == 0 && r.Ops+r.Asked+r.Memory == 0; idle && !r.HeldOut && (shortest == 0 || r.Seconds < shortest) {
			shortest = r.Seconds
		}
	}
	return shortest
}

// off is what a prediction of a reading's watts is off by, relative to these.
func (m *Model) off(r *Reading, v variant) float64 {
	return m.watts([]Kernel{r.Kernel}, v, func(*term) bool { return true })/r.Watts - 1
}

// judged holds predictions against kernels that a fit has not seen.
func (m *Model) judged(d *design) *Quality {
	q := &Quality{Drift: m.drift()}
	leverage := d.leverage()
	for _, name := range m.fitted() {
		q.Kernels++
		if leverage[name] > mostLeverage {
			continue
		}
		v := d.solve(d.y, func(row string) bool { return row == name })
		worst, sum, n := 0.0, 0.0, 0.0
		for i := range m.Readings {
			if r := &m.Readings[i]; !r.HeldOut && r.Name == name {
				e := math.Abs(m.off(r, v))
				worst, sum, n = max(worst, e), sum+e, n+1
			}
		}
		q.LeftOut++
		q.Mean += sum / n
		if worst > q.Worst {
			q.Worst, q.WorstKernel = worst, name
		}
	}
	q.Mean /= float64(max(1, q.LeftOut))
	for i := range m.Readings {
		if r := &m.Readings[i]; r.HeldOut {
			e := math.Abs(m.off(r, m.own()))
			q.HeldOut++
			q.HeldOutMean += e
			q.HeldOutWorst = max(q.HeldOutWorst, e)
		}
	}
	q.HeldOutMean /= float64(max(1, q.HeldOut))
	return q
}

// drift is the widest relative change of a kernel that was read several times.
func (m *Model) drift() (widest float64) {
	type span struct{ low, high float64 }
	seen := map[string]span{}
	for _, r := range m.Readings {
		s, ok := seen[r.Name]
		if !ok {
			s = span{r.Watts, r.Watts}
		}
		s = span{min(s.low, r.Watts), max(s.high, r.Watts)}
		seen[r.Name] = s
		widest = max(widest, s.high/s.low-1)
	}
	return widest
}

// limits finds what the card draws at its cap, at how many operations a second it holds back its clock
// far below it, and the highest rates. A limit is the most that a type was seen to do, as all of that was let
// through, if a kernel that was held back was so long that its launch hardly counts.
func (m *Model) limits() {
	const (
		often = 0.5  // of the samples
		slow  = 0.99 // of the highest clock
		far   = 0.96 // of the power at the cap
		long  = 20   // launches
		short = 2e-5 // seconds, where nobody knows how long a launch takes
	)
	m.Drawn, m.Limits, m.Rates = 0, map[arith.Type]float64{}, map[string]float64{}
	capped := func(r *Reading) bool { return r.Capped != nil && *r.Capped >= often && r.Clock < slow*m.FullClock }
	var watts []float64
	for i := range m.Readings {
		if r := &m.Readings[i]; !r.HeldOut && capped(r) && r.Watts > far*m.PowerLimit {
			watts = append(watts, r.Watts)
		}
	}
	if len(watts) > 0 {
		slices.Sort(watts)
		m.Drawn = watts[len(watts)/2]
	}
	held := map[arith.Type]float64{} // the longest, in seconds
	most := map[arith.Type]float64{}
	fastest := func(name string, rate float64) { m.Rates[name] = max(m.Rates[name], rate) }
	for i := range m.Readings {
		r := &m.Readings[i]
		if r.HeldOut {
			continue
		}
		full := m.FullClock / r.Clock
		fastest("memory", perSecond(&r.Kernel, r.Memory))
		fastest("cache", perSecond(&r.Kernel, r.Asked)*full)
		if r.Type == 0 {
			continue
		}
		fastest(r.Type.String(), perSecond(&r.Kernel, r.Ops)*full)
		most[r.Type] = max(most[r.Type], perSecond(&r.Kernel, r.Ops))
		if capped(r) && r.Watts < far*m.Drawn {
			held[r.Type] = max(held[r.Type], r.Seconds)
		}
	}
	for typ, longest := range held {
		m.Limits[typ] = 0
		if longest >= max(short, long*m.Launch) {
			m.Limits[typ] = most[typ]
		}
	}
}
