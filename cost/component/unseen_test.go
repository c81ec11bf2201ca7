package component

import (
	"math"
	"slices"
	"testing"
)

// TestLeakage: the fit finds static power that grows with the temperature. A kernel without a temperature gets the
// temperature that its power causes.
func TestLeakage(t *testing.T) {
	const perDegree, cold, perWatt = 2.5, 30, 0.05
	m := &Model{Card: "planted", PowerLimit: 700, FullClock: 1980, Facts: *card}
	for i, k := range kernels(t) {
		r := Reading{Kernel: k}
		watts, memory := usualCard.watts(&k, m.FullClock)
		r.Temperature = cold + perWatt*watts + float64(i%5) // not proportional to the power alone
		r.Watts, r.MemoryWatts = watts+perDegree*(r.Temperature-usualTemperature), &memory
		m.Readings = append(m.Readings, r)
	}
	if err := m.Fit(); err != nil {
		t.Fatal(err)
	}
	found := slices.IndexFunc(m.Coefficients, func(c Coefficient) bool { return c.Name == leakTerm })
	if found < 0 || math.Abs(m.Coefficients[found].Value/perDegree-1) > 0.1 || m.Coefficients[found].Part != Static {
		t.Fatalf("%+v", m.Coefficients)
	}
	known := m.Readings[3].Kernel
	s, err := m.Split(known)
	if err != nil || math.Abs(s.Watts/m.Readings[3].Watts-1) > 0.01 {
		t.Errorf("%v W at its temperature, planted %v: %v", s.Watts, m.Readings[3].Watts, err)
	}
	unknown := known
	unknown.Temperature = 0
	s, err = m.Split(unknown)
	planted, _ := usualCard.watts(&known, m.FullClock)
	// The mean of the five steps is 2 °C.
	want := (planted + perDegree*(cold+2-usualTemperature)) / (1 - perDegree*perWatt)
	if err != nil || math.Abs(s.Watts/want-1) > 0.006 {
		t.Errorf("%v W at the temperature of its power, planted %v: %v", s.Watts, want, err)
	}
	for i := range m.Readings {
		m.Readings[i].Temperature = 55
	}
	if err := m.Fit(); err != nil || slices.ContainsFunc(m.Coefficients, func(c Coefficient) bool { return c.Name == leakTerm }) {
		t.Errorf("leakage at one temperature: %+v, %v", m.Coefficients, err)
	}
}

// TestFewMultiprocessors: kernels on some of the multiprocessors separate the power of the first from the power of
// each. Rests and launches have neither.
func TestFewMultiprocessors(t *testing.T) {
	const first, each = 25, 110
	m := &Model{Card: "planted", PowerLimit: 700, FullClock: 1980, Facts: *card}
	p := usualCard
	p.awake = 0
	list := kernels(t)
	for _, share := range []float64{0.01, 0.2, 0.6} {
		list = append(list, Kernel{Name: "spin", Awake: share, Seconds: 1e-4, Clock: 1980},
			Kernel{Name: "spin and rest", Awake: share, Seconds: 1e-5, Idle: 4e-6, Launches: 3, Clock: 1980})
	}
	for _, k := range list {
		r := Reading{Kernel: k}
		r.Watts, _ = p.watts(&k, m.FullClock)
		busy := 1 - (emptyLaunch*float64(max(1, k.Launches))+k.Idle)/k.Seconds
		if k.Awake > 0 {
			r.Watts += (first + each*k.Awake) * busy * math.Pow(k.Clock/m.FullClock, card.Clock.Exponent.Usual+1)
		}
		m.Readings = append(m.Readings, r)
	}
	if err := m.Fit(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{anyTerm: first, awakeTerm: each} {
		i := slices.IndexFunc(m.Coefficients, func(c Coefficient) bool { return c.Name == name })
		if i < 0 || math.Abs(m.Coefficients[i].Value-want) > 1 {
			t.Errorf("%s: %+v, planted %v", name, m.Coefficients, want)
		}
	}
}

// TestSpan: the span has only unseen kernels below the cap. Each model's error is for predictions by a fit without
// the kernel.
func TestSpan(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	at := func(watts, clock, capped float64) Reading {
		k := Kernel{Name: "k", Awake: 1, Asked: 1e6, Seconds: 1e-5, Clock: clock}
		return Reading{Kernel: k, Watts: watts, Capped: &capped}
	}
	for _, c := range []struct {
		r            Reading
		spans, atCap bool
	}{
		{at(149, 1980, 0), false, false}, {at(150, 1980, 0), true, false}, {at(690, 1980, 0), true, false}, {at(690, 1970, 1), true, false},
		{at(690, 1900, 1), false, true}, {at(600, 1900, 1), true, false}, {at(690, 1900, 0.2), true, false}, {at(691, 1980, 0), false, false},
	} {
		if spans, atCap := m.spans(&c.r), m.atCap(&c.r); spans != c.spans || atCap != c.atCap {
			t.Errorf("%v W at %v MHz, capped %v: in the span %v, at the cap %v", c.r.Watts, c.r.Clock, *c.r.Capped, spans, atCap)
		}
	}
	s := m.Quality.Span
	if s == nil || s.Kernels < 10 || s.Mean > 0.01 || !(s.BestNaive() > 0.05) || s.Least < s.Low || s.Most > s.High || len(s.Naive) != len(NaiveNames()) {
		t.Fatalf("%+v", s)
	}
	// By definition, the constant with the least relative squares is Σ(1/w)/Σ(1/w²) over the other kernels.
	for _, p := range m.Unseen() {
		var one, two float64
		for i := range m.Readings {
			if r := &m.Readings[i]; r.Name != p.Name && m.spans(r) {
				one, two = one+1/r.Watts, two+1/(r.Watts*r.Watts)
			}
		}
		if math.Abs(p.Naive[0]/(one/two)-1) > 1e-6 {
			t.Errorf("%s: the constant without this kernel is %v, predicted %v", p.Name, one/two, p.Naive[0])
		}
	}
}

// TestCapClock: clocks of held-out kernels at the cap are compared with the clocks at which the model reaches the
// cap.
func TestCapClock(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	if m.Quality.AtCap != nil {
		t.Errorf("no kernel is at the cap: %+v", m.Quality.AtCap)
	}
	capped := 1.0
	for i, bits := range []float64{0.9, 1, 0.95} {
		k, err := Gemm{Type: m.Readings[0].Type, M: 8192, N: 8192, K: 4096, Bits: bits, Moved: bits}.Kernel(string(rune('p'+i)), card)
		if err != nil {
			t.Fatal(err)
		}
		k.Clock = 1900
		for {
			k.Seconds = k.Ops / 8e14 * 1980 / k.Clock
			if watts, _ := usualCard.watts(&k, m.FullClock); watts <= 690 {
				break
			}
			k.Clock--
		}
		m.Readings = append(m.Readings, Reading{Kernel: k, Watts: 690, Capped: &capped, HeldOut: i > 0})
	}
	if err := m.Fit(); err != nil {
		t.Fatal(err)
	}
	c := m.Quality.AtCap
	if c == nil || c.Kernels != 2 || c.Worst > 0.01 || c.Naive < 0.01 || m.Drawn != 690 {
		t.Errorf("%+v, %v W", c, m.Drawn)
	}
}
