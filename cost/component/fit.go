package component

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/powercap"
)

const (
	fewReadings = 8
	// mostLeverage is the largest leverage of a kernel that is left out to test the model. Above it, no other kernel
	// determines one of the coefficients.
	mostLeverage = 0.8
	// mostReadings is many times the number of a calibration. The time to leave each kernel out once grows with the
	// square of the number.
	mostReadings          = 2000
	leastWatts, mostWatts = 1e-3, 1e5
	mostMHz               = 1e5
)

// Fit computes the coefficients, their errors and the model's quality from m.Readings. It requires FullClock,
// PowerLimit, Card and Facts.
func (m *Model) Fit() error {
	if err := m.validateReadings(); err != nil {
		return err
	}
	m.Version = version
	told := m.told()
	m.Sensed = told.sensor
	m.Launch = m.launch()
	m.terms = terms(m.Types(), told, m.Launch)
	m.warmth = m.warming()
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
	m.Quality = m.quality(d)
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
		return fmt.Errorf("%w: %s", err, instead)
	}
	if !(m.FullClock > 0 && m.FullClock <= mostMHz && m.PowerLimit >= 0 && m.PowerLimit <= mostWatts) || m.Card == "" {
		return fmt.Errorf("components need the card's name, a highest clock of at most %.0f MHz, and a power limit of at most %.0f W", mostMHz, mostWatts)
	}
	if len(m.Readings) > mostReadings {
		return fmt.Errorf("%d readings are too many for a fit: give at most %d", len(m.Readings), mostReadings)
	}
	n := 0
	for _, r := range m.Readings {
		if err := cmp.Or(r.Validate(), m.possible(&r)); err != nil {
			return fmt.Errorf("%w: %s", err, instead)
		}
		if !r.HeldOut {
			n++
		}
	}
	if n < fewReadings {
		return fmt.Errorf("too few kernels for a fit (%d; at least %d are needed): run lowtoggle calibrate --components again; it continues where it stopped", n, fewReadings)
	}
	for _, t := range m.Types() {
		if !m.varied(t) {
			return fmt.Errorf("all kernels of %s have the same operands, so the effect of toggling cannot be fitted: measure kernels with other operands", t)
		}
	}
	return nil
}

// possible returns an error for a reading that is out of range.
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
		{"power in watts", r.Watts, leastWatts, mostWatts},
		{"power of the memory in watts", or0(r.MemoryWatts), 0, mostWatts},
		{"share of time at the power cap", or0(r.Capped), 0, 1},
		{"time in seconds", r.Seconds, 1e-12, 3600},                      // simulated kernels are short
		{"clock in MHz", r.Clock, m.FullClock / 100, 1.01 * m.FullClock}, // a mean may be rounded up
		{"number of operations or bytes per second", perSecond(&r.Kernel, work), 0, 1e20},
		{"relative toggling of bits", max(r.Bits, r.Moved), 0, 100},
		{"share of multiprocessors in use", r.Awake, 0, 1},
		{"temperature in °C", r.Temperature, 0, 150},
	} {
		if !(v.value >= v.low && v.value <= v.high) {
			return fmt.Errorf("the reading of kernel %s is impossible: %s is %g, but must be from %g to %g", r.Name, v.what, v.value, v.low, v.high)
		}
	}
	return nil
}

// varied reports whether the operands of a type's kernels differ in their toggling.
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

// fitted returns the names of the fit's kernels, without repetition.
func (m *Model) fitted() (names []string) {
	for _, r := range m.Readings {
		if !r.HeldOut && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

// told reports which terms the fit's readings determine. The memory's power needs kernels with and without traffic,
// leakage needs varying temperatures, and the power of one multiprocessor needs kernels that run on a few.
func (m *Model) told() (v varies) {
	const enough = 5 // °C
	quiet, traffic := false, false
	coldest, hottest := math.Inf(1), 0.0
	for _, r := range m.Readings {
		if r.HeldOut {
			continue
		}
		if r.MemoryWatts != nil {
			quiet, traffic = quiet || r.Memory == 0, traffic || r.Memory > 0
		}
		coldest, hottest = min(coldest, r.Temperature), max(hottest, r.Temperature)
		v.awake = v.awake || r.Awake > 0 && r.Awake < 0.5
	}
	v.sensor = quiet && traffic
	v.temperature = coldest > 0 && hottest-coldest >= enough
	return v
}

// launch returns the shortest time of an empty execution in seconds, or 0.
func (m *Model) launch() (shortest float64) {
	for _, r := range m.Readings {
		if idle := r.Awake == 0 && r.Ops+r.Asked+r.Memory == 0; idle && !r.HeldOut && (shortest == 0 || r.Seconds < shortest) {
			shortest = r.Seconds
		}
	}
	return shortest
}

// quality compares predictions with kernels that a fit did not use.
func (m *Model) quality(d *design) *Quality {
	m.naive = m.fitNaive("")
	m.unseen = m.predictUnseen(d)
	q := &Quality{Drift: m.drift(), Kernels: len(m.fitted())}
	lowest, highest := m.span()
	span := &Span{Low: lowest, High: highest}
	for i := range m.unseen {
		p := &m.unseen[i]
		if off := p.Off(); p.HeldOut {
			q.HeldOut++
			q.HeldOutMean += off
			q.HeldOutWorst = max(q.HeldOutWorst, off)
		} else {
			q.LeftOut++
			q.Mean += off
			if off > q.Worst {
				q.Worst, q.WorstKernel = off, p.Name
			}
		}
		if p.Spans {
			span.add(p)
		}
	}
	q.Mean /= float64(max(1, q.LeftOut))
	q.HeldOutMean /= float64(max(1, q.HeldOut))
	if span.Kernels > 0 {
		q.Span = span
	}
	q.AtCap = m.capClock()
	return q
}

// drift returns the largest relative change of the power of a kernel that was read several times.
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

// limits computes Drawn, Limits and Rates. A type has a limit if the card lowered its clock for this type although
// power was far below the cap. The limit is the type's highest measured rate, or 0 if all such kernels were so short
// that the launch affects their rate.
func (m *Model) limits() {
	const (
		long  = 20   // launches
		short = 2e-5 // seconds, if the time of a launch is unknown
	)
	m.Drawn, m.Limits, m.Rates = 0, map[arith.Type]float64{}, map[string]float64{}
	var watts []float64
	for i := range m.Readings {
		if r := &m.Readings[i]; !r.HeldOut && m.atCap(r) {
			watts = append(watts, r.Watts)
		}
	}
	if len(watts) > 0 {
		slices.Sort(watts)
		m.Drawn = watts[len(watts)/2]
	}
	held := map[arith.Type]float64{} // longest time of each type, in seconds
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
		if m.slowed(r) && !powercap.Near(r.Watts, m.Drawn) {
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
