package component

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// TestFactLimits: the numbers among a card's facts have the limits in testdata/factlimits.txt.
func TestFactLimits(t *testing.T) {
	lines := testmodel.FactLimits(t, inventedFacts(), func(string) bool { return false }, func(f Facts) error { return f.validate() })
	goldenfile.Same(t, "testdata/factlimits.txt", []byte(strings.Join(lines, "\n")+"\n"))
	f := inventedFacts()
	for v, fits := range map[float64]bool{0: true, 10: true, -1e-9: false, 10.001: false, math.NaN(): false} {
		if f.RandomMoved[arith.FP8] = v; (f.validate() == nil) != fits {
			t.Errorf("random FP8 toggles %v: %v", v, f.validate())
		}
	}
}

// fieldsOf sets each number of a reading.
var fieldsOf = []struct {
	name string
	set  func(r *Reading, v float64)
}{
	{"watts", func(r *Reading, v float64) { r.Watts = v }},
	{"memory watts", func(r *Reading, v float64) { r.MemoryWatts = &v }},
	{"capped", func(r *Reading, v float64) { r.Capped = &v }},
	{"seconds", func(r *Reading, v float64) { r.Seconds = v }},
	{"clock", func(r *Reading, v float64) { r.Clock = v }},
	{"operations", func(r *Reading, v float64) { r.Ops = v }},
	{"asked", func(r *Reading, v float64) { r.Asked = v }},
	{"memory", func(r *Reading, v float64) { r.Memory = v }},
	{"again", func(r *Reading, v float64) { r.Again = v }},
	{"bits", func(r *Reading, v float64) { r.Bits = v }},
	{"moved", func(r *Reading, v float64) { r.Moved = v }},
	{"awake", func(r *Reading, v float64) { r.Awake = v }},
	{"temperature", func(r *Reading, v float64) { r.Temperature = v }},
}

var limitsOfReading = regexp.MustCompile(` is \S+, but must be from (\S+) to (\S+)$`)

// TestReadingLimits: every number of a reading has the limits in testdata/readinglimits.txt. The limits themselves are possible; the
// next numbers beyond them are not.
func TestReadingLimits(t *testing.T) {
	m := &Model{FullClock: 2000}
	usual := Reading{Kernel: Kernel{Name: "k", Type: arith.BF16, Ops: 1, Asked: 1, Memory: 1, Again: 1, Bits: 1, Moved: 1, Awake: 1, Seconds: 1, Clock: 1900}, Watts: 100}
	var b strings.Builder
	for _, f := range fieldsOf {
		r := usual
		f.set(&r, 1e300)
		err := m.possible(&r)
		if err == nil {
			t.Fatalf("%s of 1e300 is possible", f.name)
		}
		fmt.Fprintf(&b, "%s: %v\n", f.name, err)
		for end, text := range limitsOfReading.FindStringSubmatch(err.Error())[1:] {
			limit, err := strconv.ParseFloat(text, 64)
			testmodel.OK(t, err)
			if end == 0 && strings.Contains("operations asked memory again bits moved", f.name) {
				continue // another number of the reading is larger
			}
			if f.set(&r, limit); m.possible(&r) != nil {
				t.Errorf("%s of %v: %v", f.name, limit, m.possible(&r))
			}
			if f.set(&r, math.Nextafter(limit, math.Inf(2*end-1))); m.possible(&r) == nil {
				t.Errorf("%s beyond %v is possible", f.name, limit)
			}
		}
	}
	goldenfile.Same(t, "testdata/readinglimits.txt", []byte(b.String()))
}

// someCard returns a model with readings of all kinds: repeated, held-out, at the cap, with a type's limit, of two types.
func someCard(t *testing.T) *Model {
	t.Helper()
	draw := rand.New(rand.NewPCG(9, 9))
	m := &Model{Card: "Invented Q1", PowerLimit: 700, FullClock: 1980, Facts: inventedFacts()}
	add := func(k Kernel, heldOut bool, capped float64) {
		r := Reading{Kernel: k, HeldOut: heldOut, Capped: &capped}
		watts, memory := usualCard.watts(&k, m.FullClock)
		r.Watts, r.MemoryWatts = watts*(1+0.004*draw.NormFloat64()), &memory
		r.Temperature = 30 + 0.05*r.Watts + draw.Float64()
		m.Readings = append(m.Readings, r)
	}
	for i, k := range kernels(t) {
		if i%3 == 1 && k.Type == arith.BF16 {
			k.Type = arith.FP8
		}
		add(k, i%5 == 4, 0)
	}
	add(m.Readings[0].Kernel, false, 0) // again
	for i, share := range []float64{0.3, 0.5, 0.02} {
		add(Kernel{Name: fmt.Sprint("few ", i), Awake: share, Asked: 1e6, Seconds: 1e-4 / float64(1+i), Idle: 1e-5 * float64(i), Launches: i, Clock: 1980}, false, 0)
	}
	for i, bits := range []float64{0.9, 1, 0.95, 0.98, 0.92, 1.05} { // at the cap
		k, err := Gemm{Type: []arith.Type{arith.BF16, arith.FP8}[i/4], M: 8192, N: 8192, K: 4096, Bits: bits, Moved: bits}.Kernel(fmt.Sprint("cap ", i), &m.Facts)
		testmodel.OK(t, err)
		for k.Clock = 1900; ; k.Clock-- {
			k.Seconds = k.Ops / 8e14 * 1980 / k.Clock
			if watts, _ := usualCard.watts(&k, m.FullClock); watts <= 690 {
				break
			}
		}
		add(k, i%2 == 1, 1)
	}
	for i, slower := range []float64{1, 1.5, 4} { // slowed far below the cap
		k := m.Readings[1].Kernel
		k.Name, k.Clock, k.Seconds = fmt.Sprint("slow ", i), 1700, k.Seconds*slower
		add(k, i == 2, 0.9)
	}
	for i, moved := range []float64{0.1, 0.3, 0.5} {
		k := m.Readings[21].Kernel
		k.Name, k.Moved, k.Clock = fmt.Sprint("cold at less ", i), moved, 1980-float64(200*i)
		add(k, i == 1, 0)
	}
	return m
}

// derived returns what a fit derives from readings before it solves anything, in lines.
func derived(t *testing.T, m *Model) (lines []string) {
	t.Helper()
	put := func(name string, v any) { lines = append(lines, name+": "+string(sixDigits(t, v))) }
	if err := m.validateReadings(); err != nil {
		put("refused", err.Error())
	}
	told := m.told()
	put("terms", []bool{told.sensor, told.temperature, told.awake})
	m.Launch = m.launch()
	m.limits()
	put("launch", m.Launch*1e6)
	put("drawn", m.Drawn)
	put("limits", m.Limits)
	put("rates", m.Rates)
	put("drift", m.drift())
	warmth := m.warming()
	put("temperature", []float64{warmth.cold, 1000 * warmth.perWatt})
	put("lowest clock", m.LowestMeasured())
	put("kernels", len(m.fitted()))
	put("types", m.Types())
	var marks strings.Builder
	for i := range m.Readings {
		r := &m.Readings[i]
		for mark, is := range []bool{m.spans(r), m.atCap(r), m.slowed(r), m.memoryBound(r.Kernel)} {
			if is {
				marks.WriteByte("sclm"[mark])
			}
		}
		marks.WriteByte(' ')
	}
	put("below the cap, at the cap, slowed, in memory", marks.String())
	return lines
}

// TestChangedReadings: any change of one number of one reading has the recorded effect on what a fit derives from the readings.
func TestChangedReadings(t *testing.T) {
	var b strings.Builder
	usual := derived(t, someCard(t))
	fmt.Fprintln(&b, strings.Join(usual, "\n"))
	put := func(change string, m *Model) {
		changed := slices.DeleteFunc(derived(t, m), func(line string) bool { return slices.Contains(usual, line) })
		if len(changed) > 0 {
			fmt.Fprintf(&b, "# %s\n%s\n", change, strings.Join(changed, "\n"))
		}
	}
	m := someCard(t)
	for _, i := range []int{0, 2, 22, 23, 25, 28, 31, 34, 37} {
		of, r := m.Readings[i].Name, &m.Readings[i]
		was := *r
		for _, f := range fieldsOf {
			for _, v := range []float64{0, 0.04, 1, 90, 150, 655, 690, 1882, 1e9, 1e13} {
				if f.set(r, v); m.possible(r) == nil && r.Validate() == nil && f.name != "seconds" {
					put(fmt.Sprintf("%s: %s of %g", of, f.name, v), m)
				}
				*r = was
			}
		}
		r.Seconds /= 7
		put(of+": a seventh of the time", m)
		*r = was
		r.HeldOut = !was.HeldOut
		put(of+": held out or not", m)
		*r = was
		r.MemoryWatts, r.Capped = nil, nil
		put(of+": no sensor, no reasons", m)
		*r = was
	}
	for i := range m.Readings {
		m.Readings[i].Temperature = 45 + 0.1*float64(i%50)
	}
	put("temperatures within 4.1 °C", m)
	m.Readings[0].Temperature = 50.1
	put("temperatures within 5.1 °C", m)
	m.Readings[0].Temperature = 50
	put("temperatures within 5 °C", m)
	m.Readings = m.Readings[:9]
	put("9 readings", m)
	m.Readings = m.Readings[:4]
	put("4 readings", m)
	goldenfile.Same(t, "testdata/readings.txt", []byte(b.String()))
}

// TestChangedFits: cards with and without a sensor, temperatures, held-out kernels and so on have the recorded fits, to six digits.
func TestChangedFits(t *testing.T) {
	var b strings.Builder
	for i, c := range []struct {
		name   string
		change func(m *Model)
		each   func(r *Reading)
	}{
		{"all", nil, nil},
		{"without a sensor", nil, func(r *Reading) { r.MemoryWatts = nil }},
		{"without temperatures", nil, func(r *Reading) { r.Temperature = 0 }},
		{"nothing held out", nil, func(r *Reading) { r.HeldOut = false }},
		{"no power limit", func(m *Model) { m.PowerLimit = 0 }, nil},
		{"a higher limit and clock", func(m *Model) { m.PowerLimit, m.FullClock = 800, 2100 }, nil},
		{"every kernel whole", nil, func(r *Reading) { r.Awake = math.Ceil(r.Awake) }},
		{"no caches", nil, func(r *Reading) { r.Asked, r.Again = 0, 0 }},
		{"no reasons", nil, func(r *Reading) { r.Capped = nil }},
	} {
		m := someCard(t)
		if c.change != nil {
			c.change(m)
		}
		if c.each != nil {
			for i := range m.Readings {
				c.each(&m.Readings[i])
			}
		}
		fmt.Fprintf(&b, "# %s\n", c.name)
		put := func(name string, v any) { fmt.Fprintf(&b, "%s: %s\n", name, sixDigits(t, v)) }
		if err := m.Fit(); err != nil {
			put("refused", err.Error())
			continue
		}
		for _, c := range m.Coefficients {
			scale := 1.0
			if c.Unit == "J" {
				scale = 1e12
			}
			put(c.Name, []any{c.Part, c.Value * scale, c.Error * scale, c.Unit})
		}
		put("quality", m.Quality)
		put("verdicts", []string{fmt.Sprint(m.Verdict()), fmt.Sprint(m.Splits())})
		for _, p := range m.Unseen() {
			if i > 1 {
				break
			}
			put("unseen "+p.Name, []any{p.Predicted.Watts, p.Naive, p.Spans, p.AtCap, m.Sensor(p.Predicted)})
		}
		for _, i := range []int{1, 12, 21, 24} {
			k := m.Readings[i].Kernel
			k.Temperature = 0
			s, err := m.Split(k)
			put("split "+k.Name, []any{s, err})
			k.Seconds, k.Clock = 0, 0
			s, err = m.SplitSequence([]Kernel{k, m.Readings[0].Kernel})
			put("in turns", []any{s, err, m.Clock([]Kernel{k})})
			put("timed", m.Timed([]Kernel{k, m.Readings[3].Kernel}, 2, 1500)[1].Seconds)
			put("at 1200 MHz", m.At(m.Readings[i].Kernel, 1200).Seconds*1e6)
			a, err := m.Advise("phase", []Kernel{k})
			if err != nil {
				put("no advice", err.Error())
				continue
			}
			put("advice", []any{a.Default, a.Within1, a.Within5, a.LeastEDP, len(a.Settings)})
		}
	}
	goldenfile.Same(t, "testdata/fits.txt", []byte(b.String()))
}
