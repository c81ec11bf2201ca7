package component

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"pgregory.net/rapid"
)

// planted are the coefficients of an invented card, in watts and picojoules.
type planted struct {
	static, awake, ops, bits, cache, way, wayBits, memory, memoryBits, again float64
	offset                                                                   float64 // of the memory's sensor
}

var usualCard = planted{static: 90, awake: 60, ops: 0.15, bits: 0.55, cache: 12, way: 25, wayBits: 20, memory: 35, memoryBits: 10, again: 20, offset: 45}

const emptyLaunch = 1e-6 // in seconds

// watts returns the power of a kernel at its clock.
func (p planted) watts(k *Kernel, full float64) (watts, memory float64) {
	const pico = 1e-12
	c := k.Clock / full
	on := math.Pow(c, card.Clock.Exponent.Usual)
	a := perSecond
	memory = pico * (p.memory*a(k, k.Memory) + p.memoryBits*k.Moved*a(k, k.Memory) + p.again/2*a(k, k.Again))
	watts = p.static + p.awake*k.Awake*(1-emptyLaunch/k.Seconds)*on*c + memory +
		pico*on*(p.ops*a(k, k.Ops)+p.bits*k.Bits*a(k, k.Ops)+p.cache*a(k, k.Asked)+p.way*a(k, k.Memory)+p.wayBits*k.Moved*a(k, k.Memory)+p.again/2*a(k, k.Again))
	return watts, memory + p.offset
}

// kernels returns kernels that stress one component each, at plausible clocks.
func kernels(t rapid.TB) (list []Kernel) {
	t.Helper()
	add := func(g Gemm, name string, clock float64) {
		k, err := g.Kernel(name, card)
		if err != nil {
			t.Fatal(err)
		}
		k.Clock = clock
		k.Seconds = max(k.Ops/7e14, k.Memory/4e12, 2e-6) * 1980 / clock
		list = append(list, k)
	}
	for _, s := range [][3]int{{2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 8192, 512}, {1024, 1024, 1024}, {1024, 1024, 16384}, {256, 8192, 8192}} {
		for i, bits := range []float64{0, 0.5, 1} {
			name := string(rune('a'+i)) + " " + strings.Repeat("x", len(list)) // a unique name
			add(Gemm{Type: arith.BF16, M: s[0], N: s[1], K: s[2], Bits: bits, Moved: 0.7 * bits}, name, 1980-200*bits)
		}
	}
	for i, moved := range []float64{0, 0.7} {
		add(Gemm{Type: arith.BF16, M: 16, N: 8192, K: 8192, Cold: true, Bits: 1, Moved: moved}, "cold "+string(rune('0'+i)), 1980)
	}
	for _, traffic := range []Kernel{
		{Name: "launches", Seconds: emptyLaunch},
		{Name: "fill, cache", Awake: 1, Asked: 8e6, Seconds: 2e-6},
		{Name: "fill, memory", Awake: 1, Asked: 5e8, Memory: 5e8, Seconds: 1.6e-4},
		{Name: "copy, cache", Awake: 1, Asked: 1.6e7, Moved: 1, Seconds: 3e-6},
		{Name: "copy, memory", Awake: 1, Asked: 1e9, Memory: 1e9, Moved: 1, Seconds: 2.6e-4},
	} {
		traffic.Clock = 1980
		list = append(list, traffic)
	}
	return list
}

// card has the facts of the built-in card.
var card = func() *Facts {
	f, err := FactsFor("h200")
	if err != nil {
		panic(err)
	}
	return &f
}()

// fitted returns a model fitted to readings of a planted card. noise is relative and may be nil.
func fitted(t rapid.TB, p planted, sensed bool, noise func() float64) *Model {
	t.Helper()
	m := &Model{Card: "planted", PowerLimit: 700, FullClock: 1980, Facts: *card}
	for _, k := range kernels(t) {
		r := Reading{Kernel: k}
		var memory float64
		if r.Watts, memory = p.watts(&k, m.FullClock); noise != nil {
			r.Watts *= 1 + noise()
		}
		if sensed {
			r.MemoryWatts = &memory
		}
		m.Readings = append(m.Readings, r)
	}
	if err := m.Fit(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPlanted: the fit finds the planted coefficients if the memory's power is read.
func TestPlanted(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	p := usualCard
	for name, want := range map[string]float64{staticTerm: p.static, "awake": p.awake, opsPrefix + "bf16": p.ops, opsPrefix + "bf16" + bitsPostfix: p.bits,
		"cache byte": p.cache, "byte to memory": p.way, "byte to memory" + bitsPostfix: p.wayBits, hbmTerm: p.memory, hbmTerm + bitsPostfix: p.memoryBits, sensorTerm: p.offset} {
		found := false
		for _, c := range m.Coefficients {
			if c.Name != name {
				continue
			}
			found = true
			value := c.Value
			if c.Unit == "J" {
				value *= 1e12
			}
			if math.Abs(value/want-1) > 0.08 {
				t.Errorf("%s: %.4g %s, planted %.4g", name, value, c.Unit, want)
			}
		}
		if !found {
			t.Errorf("%s is missing", name)
		}
	}
	if m.Quality.Mean > 0.01 || m.Quality.HeldOut != 0 {
		t.Errorf("%+v", *m.Quality)
	}
}

// TestPlantedCards: for any planted card, predictions of unseen kernels are about as accurate as the readings, and
// splits add up.
func TestPlantedCards(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	number := func(low, high float64) float64 { return low + (high-low)*draw.Float64() }
	for i := range 6 {
		p := planted{static: number(50, 150), awake: number(10, 100), ops: number(0.02, 0.4), bits: number(0.2, 0.9),
			cache: number(3, 25), way: number(5, 40), wayBits: number(5, 40), memory: number(20, 50),
			memoryBits: number(2, 20), again: number(3, 25), offset: number(10, 60)}
		sensed := i%2 == 0
		m := fitted(t, p, sensed, func() float64 { return number(-0.005, 0.005) })
		if m.Sensed != sensed {
			t.Fatal("Sensed is wrong")
		}
		most := 0.03
		if !sensed { // the path to memory depends on the clock, which the model does not know
			most = 0.08
		}
		for range 10 {
			unseen, err := Gemm{Type: arith.BF16, M: 3000, N: 5000, K: 7000, Bits: number(0, 1), Moved: number(0, 1)}.Kernel("unseen", card)
			if err != nil {
				t.Fatal(err)
			}
			unseen.Clock = number(1400, 1980)
			unseen.Seconds = unseen.Ops / 7e14 * 1980 / unseen.Clock
			want, _ := p.watts(&unseen, m.FullClock)
			s, err := m.Split(unseen)
			if err != nil || math.Abs(s.Watts/want-1) > most {
				t.Errorf("%+v, %+v: %.1f W, planted %.1f (%v)", p, unseen, s.Watts, want, err)
			}
			sum := 0.0
			for _, share := range s.Parts {
				if sum += share.Watts; share.Watts < 0 || share.Bits < 0 || share.Bits > share.Watts+1e-9 || !(share.Error >= 0) {
					t.Fatalf("%+v", share)
				}
			}
			if math.Abs(sum-s.Watts) > 1e-9*s.Watts || len(s.Parts) != len(Parts()) || s.Of(HBM).Part != HBM {
				t.Fatalf("parts sum to %v of %v", sum, s.Watts)
			}
		}
	}
}

// TestClock: the clock is the highest within the cap and within the limit of operations.
func TestClock(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	k, err := Gemm{Type: arith.BF16, M: 8192, N: 8192, K: 8192, Bits: 1, Moved: 0.7}.Kernel("k", card)
	if err != nil {
		t.Fatal(err)
	}
	m.Drawn, m.PowerLimit = 0, 0
	free := m.At(k, m.FullClock)
	if clock := m.Clock([]Kernel{k}); clock != m.FullClock {
		t.Errorf("%v MHz without a cap", clock)
	}
	s, _ := m.Split(free)
	m.PowerLimit = s.Watts * 0.9 // a limit that no kernel reached
	if at, _ := m.Split(m.At(k, m.Clock([]Kernel{k}))); math.Abs(at.Watts-m.PowerLimit) > 0.01 {
		t.Errorf("%.2f W where the limit is %.2f", at.Watts, m.PowerLimit)
	}
	m.Drawn = s.Watts * 0.8
	m.PowerLimit = m.Drawn + 8
	clock := m.Clock([]Kernel{k})
	if s, _ = m.Split(m.At(k, clock)); math.Abs(s.Watts-m.Drawn) > 0.01 || clock >= m.FullClock {
		t.Errorf("%.2f W at %.0f MHz, the card draws %.2f", s.Watts, clock, m.Drawn)
	}
	m.Drawn -= 100
	if lower := m.Clock([]Kernel{k}); lower >= clock {
		t.Errorf("%.0f MHz at 100 W less, %.0f MHz before", lower, clock)
	}
	m.Drawn += 100
	m.Limits = map[arith.Type]float64{arith.BF16: k.Ops / free.Seconds / 2}
	if half := m.Clock([]Kernel{k}); math.Abs(half/m.FullClock-0.5) > 0.01 {
		t.Errorf("%.0f MHz where half of the operations are let through", half)
	}
}

// TestLimits: a limit is the highest measured rate of a type, if a kernel at a lowered clock shows it. Held-out
// kernels do not count.
func TestLimits(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	held, free := 1.0, 0.0
	for i := range m.Readings {
		m.Readings[i].Capped = &free
	}
	add := func(seconds, rate, watts float64, heldOut bool) {
		k := Kernel{Name: "k", Type: arith.BF16, Ops: rate * seconds, Awake: 1, Seconds: seconds, Clock: 1700}
		m.Readings = append(m.Readings, Reading{Kernel: k, HeldOut: heldOut, Watts: watts, Capped: &held})
		m.limits()
	}
	if m.limits(); len(m.Limits) != 0 || m.Drawn != 0 {
		t.Errorf("no kernel has a lowered clock: limits %v, %v W", m.Limits, m.Drawn)
	}
	add(1e-3, 7e14, 699, true)
	if m.Drawn != 0 {
		t.Errorf("%v W come from a held-out kernel", m.Drawn)
	}
	add(1e-3, 7e14, 690, false)
	add(10*emptyLaunch, 5e14, 400, false)
	if l, ok := m.Limits[arith.BF16]; !ok || l != 0 || m.Drawn != 690 {
		t.Errorf("of a short kernel alone: limits %v, %v W", m.Limits, m.Drawn)
	}
	m.Launch = 0 // not measured
	if m.limits(); m.Limits[arith.BF16] != 0 {
		t.Errorf("of a short kernel beside no launch: limits %v", m.Limits)
	}
	add(1e-4, 6e14, 400, false)
	add(1e-4, 8e14, 650, true)
	if l := m.Limits[arith.BF16]; math.Abs(l/7e14-1) > 1e-9 {
		t.Errorf("limit %v, and 7e14 were seen", l)
	}
}

// TestAt: compute-bound time is proportional to 1/clock, memory-bound time hardly changes, and the way back gives the
// original time.
func TestAt(t *testing.T) {
	m := fitted(t, usualCard, false, nil)
	rapid.Check(t, func(t *rapid.T) {
		k := m.Readings[rapid.IntRange(0, len(m.Readings)-1).Draw(t, "kernel")].Kernel
		clock := rapid.Float64Range(600, 1980).Draw(t, "clock")
		at := m.At(k, clock)
		back := m.At(at, k.Clock)
		if math.Abs(back.Seconds/k.Seconds-1) > 1e-6 {
			t.Fatalf("%s: %v, there and back %v", k.Name, k.Seconds, back.Seconds)
		}
		slower := at.Seconds / k.Seconds * clock / k.Clock // 1 if time is proportional to 1/clock
		if at.Seconds < k.Seconds*min(1, k.Clock/clock)-1e-12 || clock < k.Clock && slower > 1+1e-9 {
			t.Fatalf("%s: %v at %v MHz, %v at %v", k.Name, k.Seconds, k.Clock, at.Seconds, clock)
		}
		if k.Memory == 0 && math.Abs(slower-1) > 1e-9 {
			t.Fatalf("%s: does not follow the clock", k.Name)
		}
	})
}

// TestAtRests: the time of a rest does not depend on the clock.
func TestAtRests(t *testing.T) {
	m := fitted(t, usualCard, false, nil)
	k := Kernel{Name: "k", Awake: 1, Seconds: 5e-5, Idle: 3e-5, Clock: 1980}
	if got := m.At(k, 990).Seconds; math.Abs(got-7e-5) > 1e-9 {
		t.Errorf("20 µs of work and 30 µs of rest take %v s at half the clock", got)
	}
}

// TestAdvise: choices keep to their time and lie on the curve, and their sentences agree with them.
func TestAdvise(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	m.Drawn = 500
	layer := func(bits float64) []Kernel {
		k, err := Gemm{Type: arith.BF16, M: 8192, N: 8192, K: 8192, Bits: bits, Moved: 0.7 * bits}.Kernel("layer", card)
		if err != nil {
			t.Fatal(err)
		}
		return []Kernel{k, k}
	}
	a, err := m.Advise("prefill", layer(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		Choice
		time float64
	}{{a.Within1, 1.01}, {a.Within5, 1.05}} {
		if c.Time > c.time || c.Energy > 1 || math.Abs(c.EDP-c.Energy*c.Time) > 1e-12 || c.Clock > a.Default.Clock {
			t.Errorf("%+v of %+v", c, a.Default)
		}
		for _, s := range a.Settings {
			if s.Clock >= reach*m.lowestLike(layer(1)) && s.Seconds <= c.time*a.Default.Seconds && s.Joules < c.Joules {
				t.Errorf("%+v is better than %+v", s, c.Setting)
			}
		}
	}
	for _, s := range a.Settings {
		if s.EDP() < a.LeastEDP.Setting.EDP() {
			t.Errorf("%+v has a lesser EDP than %+v", s, a.LeastEDP)
		}
	}
	if last := a.Settings[len(a.Settings)-1]; last.Clock != card.Clock.LowestAdvised || len(a.Settings) < 20 {
		t.Errorf("the curve of %d ends at %v", len(a.Settings), last.Clock)
	}
	quiet, err := m.Advise("prefill", layer(0.6))
	if err != nil {
		t.Fatal(err)
	}
	if quiet.Default.Clock <= a.Default.Clock || quiet.Default.Joules >= a.Default.Joules {
		t.Errorf("held by the cap, quieter operands run at %v MHz, louder ones at %v", quiet.Default.Clock, a.Default.Clock)
	}
	text := strings.Join(append(a.Text(), Contrast(a, quiet)...), "\n")
	if !strings.Contains(text, "the conversion changes energy by −") || strings.Contains(text, "NaN") {
		t.Error(text)
	}
	m.Drawn = 0 // no cap applies, and all power is static: no clock is better than the highest
	for i := range m.variants {
		for j := range m.terms {
			if m.terms[j].part != Static {
				m.variants[i].coefficients[j] = 0
			}
		}
	}
	if a, err = m.Advise("idle", layer(1)); err != nil || a.Within5.Clock != m.FullClock || !strings.Contains(strings.Join(a.Text(), "\n"), "no lower clock saves more") {
		t.Errorf("%+v, %v: %v", a.Within5, err, a.Text())
	}
}

// TestFile: a model can be written and read, with equal splits.
func TestFile(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	name := filepath.Join(t.TempDir(), "c.json")
	if err := m.Write(name); err != nil {
		t.Fatal(err)
	}
	read, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	k := m.Readings[3].Kernel
	a, _ := m.Split(k)
	b, err := read.Split(k)
	if err != nil || a.Watts != b.Watts || a.Error != b.Error {
		t.Errorf("%v before, %v after (%v)", a, b, err)
	}
	for text, want := range map[string]string{
		`{}`:                                "components_version",
		`{"components_version": 99}`:        "version 99",
		`[`:                                 "not a components file",
		`{"components_version": 1, "x": 2}`: "damaged",
		`{"components_version": 1, "card": "c", "highest_clock_mhz": 1, "coefficients": [], "readings": []}`: "too few",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Find("no such card"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "calibrate --components") {
		t.Error(err)
	}
}

// TestRefuses: models that cannot be fitted and kernels that cannot be split are errors with reasons.
func TestRefuses(t *testing.T) {
	m := fitted(t, usualCard, false, nil)
	for name, c := range map[string]struct {
		k    Kernel
		want string
	}{
		"type":     {Kernel{Name: "k", Type: arith.FP8, Ops: 1}, "only for bf16"},
		"no type":  {Kernel{Name: "k", Ops: 1}, "give the type of its operands"},
		"clock":    {Kernel{Name: "k", Seconds: 1}, "clock"},
		"negative": {Kernel{Name: "k", Asked: -1}, "at least 0"},
		"NaN":      {Kernel{Name: "k", Bits: math.NaN()}, "finite"},
	} {
		if _, err := m.Split(c.k); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Advise("x", nil); err == nil {
		t.Error("advice without kernels")
	}
	if _, err := (Gemm{Type: arith.BF16, M: 1, N: 0, K: 1}).Kernel("k", card); err == nil {
		t.Error("a product without outputs")
	}
	same := *m
	same.Readings = nil
	for _, r := range m.Readings {
		r.Bits = 1
		same.Readings = append(same.Readings, r)
	}
	if err := same.Fit(); err == nil || !strings.Contains(err.Error(), "same operands") {
		t.Error(err)
	}
	few := *m
	few.Readings = m.Readings[:3]
	if err := few.Fit(); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Error(err)
	}
}

// TestImpossible: impossible readings are errors that name the reading and the reason.
func TestImpossible(t *testing.T) {
	whole := fitted(t, usualCard, true, nil)
	number := func(v float64) *float64 { return &v }
	for want, change := range map[string]func(m *Model, r *Reading){
		"watts is -100":             func(_ *Model, r *Reading) { r.Watts = -100 },
		"watts is 0,":               func(_ *Model, r *Reading) { r.Watts = 0 },
		"watts is 1e+308":           func(_ *Model, r *Reading) { r.Watts = 1e308 },
		"memory in watts is -5":     func(_ *Model, r *Reading) { r.MemoryWatts = number(-5) },
		"memory in watts is 1e+308": func(_ *Model, r *Reading) { r.MemoryWatts = number(1e308) },
		"cap is 5":                  func(_ *Model, r *Reading) { r.Capped = number(5) },
		"seconds is 0,":             func(_ *Model, r *Reading) { r.Seconds, r.Clock = 0, 0 },
		"seconds is 1e-300":         func(_ *Model, r *Reading) { r.Seconds = 1e-300 },
		"MHz is 2100":               func(_ *Model, r *Reading) { r.Clock = 2100 },
		"MHz is 1e-300":             func(_ *Model, r *Reading) { r.Clock = 1e-300 },
		"per second is 1e+308":      func(_ *Model, r *Reading) { r.Asked, r.Seconds = 1e308, 1 },
		"bits is 1e+06":             func(_ *Model, r *Reading) { r.Moved = 1e6 },
		"in use is 2,":              func(_ *Model, r *Reading) { r.Awake = 2 },
		"from 0.01 to 1.01":         func(m *Model, _ *Reading) { m.FullClock = 1 },
		"highest clock":             func(m *Model, _ *Reading) { m.FullClock = 1e300 },
		"power limit":               func(m *Model, _ *Reading) { m.PowerLimit = -1 },
		"2001 readings are too many": func(m *Model, r *Reading) {
			for len(m.Readings) <= mostReadings {
				m.Readings = append(m.Readings, *r)
			}
		},
	} {
		m := *whole
		m.Readings = slices.Clone(whole.Readings)
		change(&m, &m.Readings[2])
		if err := m.Fit(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestAnd: two kernels combined have the sum of their work and time.
func TestAnd(t *testing.T) {
	a := Kernel{Name: "a", Type: arith.BF16, Ops: 4, Asked: 2, Memory: 2, Bits: 1, Moved: 1, Awake: 1, Seconds: 2, Clock: 1500}
	b := Kernel{Name: "b", Asked: 4, Again: 3, Moved: 0.5, Awake: 1, Seconds: 3, Clock: 1500}
	k, err := a.And(b)
	if err != nil || k.Ops != 4 || k.Bits != 1 || k.Asked != 6 || k.Memory != 2 || k.Again != 3 || k.Moved != 0.75 || k.Seconds != 5 || k.Clock != 1500 {
		t.Errorf("%+v, %v", k, err)
	}
	b.Type = arith.FP8
	if _, err := a.And(b); err == nil {
		t.Error("two arithmetics as one")
	}
}

// TestErrorsOfParts: the error of the model's form is in the errors of parts, as in the total error. A coefficient
// that the fit holds at zero has an error too.
func TestErrorsOfParts(t *testing.T) {
	card, draw := usualCard, rand.New(rand.NewPCG(3, 1))
	card.again = 0
	m := fitted(t, card, true, func() float64 { return 0.02 * draw.NormFloat64() })
	m.Quality.HeldOut, m.Quality.HeldOutMean = 1, 0.05
	k := m.Readings[0].Kernel
	s, err := m.Split(k)
	if err != nil {
		t.Fatal(err)
	}
	form := 0.0
	for _, p := range s.Parts {
		form += p.Error * p.Error
	}
	if form = math.Sqrt(form); form < 0.05*s.Watts || s.Error < 0.05*s.Watts {
		t.Errorf("errors of parts make %.1f W of %.0f, of the whole %.1f W, and predictions are off by 5 %%", form, s.Watts, s.Error)
	}
	for _, c := range m.Coefficients {
		if c.Value == 0 && c.Error == 0 && c.Name != "byte asked again" {
			t.Errorf("%s is 0 for sure", c.Name)
		}
	}
}

// TestResampled: residuals are resampled only among rows of the same kind. Here rows of power have errors of some per
// cent, and rows of the memory's sensor are exact.
func TestResampled(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 6))
	m := fitted(t, usualCard, true, func() float64 { return 0.05 * draw.NormFloat64() })
	offset := len(m.terms)
	if c := m.Coefficients[offset]; c.Name != sensorTerm || c.Error > 1 {
		t.Errorf("%s ± %.2f %s, for exact readings", c.Name, c.Error, c.Unit)
	}
	if e := m.design(card.Clock.Exponent.Usual).unbounded(m.own())[offset]; e > 1 {
		t.Errorf("unbounded, ± %.2f W", e)
	}
	if c := m.Coefficients[0]; c.Name != staticTerm || c.Error < 1 {
		t.Errorf("%s ± %.2f %s, for readings with errors of 5 %%", c.Name, c.Error, c.Unit)
	}
}

// TestExtrapolated: clocks at which only other kinds of kernels were measured count as not measured.
func TestExtrapolated(t *testing.T) {
	m := fitted(t, usualCard, true, nil)
	memory, products := Kernel{}, Kernel{}
	for _, r := range m.Readings {
		switch {
		case strings.HasPrefix(r.Name, "cold"):
			memory = r.Kernel
		case r.Memory == 0 && r.Ops > 0:
			products = r.Kernel
		}
	}
	if got := m.lowestLike([]Kernel{memory}); got != 1980 {
		t.Errorf("decoding was measured at 1980 MHz alone, not at %v", got)
	}
	if got := m.lowestLike([]Kernel{products}); got != 1780 {
		t.Errorf("products were measured down to 1780 MHz, not %v", got)
	}
	if a, err := m.Advise("decode", []Kernel{memory}); err != nil || a.Within5.Clock < 0.8*1980 || a.LeastEDP.Clock < 0.8*1980 {
		t.Errorf("%+v, %v: far below all measured clocks", a, err)
	}
	memory.Type = arith.FP8
	if got := m.lowestLike([]Kernel{memory}); !math.IsInf(got, 1) {
		t.Errorf("no FP8 was measured, not at %v", got)
	}
}
