package bench

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/component"
)

// componentsRecord are the readings of calibrate --components on one card, which were interrupted.
const componentsRecord = recorded + "components/H200-214c.json"

// cardKernel is a recorded kernel, predicted by the built-in components, and unseen by a fit to the card's other kernels.
type cardKernel struct {
	builtIn component.Prediction
	own     *component.Prediction // nil if the fit has seen it
}

// recordedCard are the kernels of a card that calibrate --components measured, and a model fitted to them.
type recordedCard struct {
	own      *component.Model
	readings int
	kernels  []cardKernel
}

// recordedKernels reads componentsRecord. Only one kernel of TF32 was read for the fit, which cannot tell what its bits cost.
func (c *components) recordedKernels(t *testing.T) *recordedCard {
	t.Helper()
	m, err := component.Read(componentsRecord)
	if err != nil {
		t.Fatal(err)
	}
	all := m.Readings
	r := &recordedCard{own: m, readings: len(all)}
	m.Readings = slices.DeleteFunc(slices.Clone(all), func(k component.Reading) bool { return k.Type == arith.TF32 })
	if err := m.Fit(); err != nil {
		t.Fatal(err)
	}
	own := map[string]*component.Prediction{}
	unseen := m.Unseen()
	for i := range unseen {
		own[unseen[i].Name] = &unseen[i]
	}
	seen := map[string]bool{}
	for _, k := range all {
		if !seen[k.Name] {
			seen[k.Name] = true
			r.kernels = append(r.kernels, cardKernel{c.model.Compare(k), own[k.Name]})
		}
	}
	return r
}

// below are the kernels below the power cap, between the watts of a span.
func (r *recordedCard) below() []cardKernel {
	return slices.DeleteFunc(slices.Clone(r.kernels), func(k cardKernel) bool { return !k.builtIn.Spans })
}

// cardErrors are mean errors on kernels: of the built-in components, of naive models and of the card's own fit.
type cardErrors struct {
	n, ownN     int
	least, most float64 // watts
	mean, worst float64
	naive       []float64
	own         float64
}

func errorsOn(list []cardKernel) (e cardErrors) {
	e = cardErrors{n: len(list), least: math.Inf(1), naive: make([]float64, len(component.NaiveNames()))}
	for i := range list {
		p := &list[i].builtIn
		watts := p.Reading.Watts
		e.least, e.most = min(e.least, watts), max(e.most, watts)
		e.mean += p.Off() / float64(e.n)
		e.worst = max(e.worst, p.Off())
		for j, v := range p.Naive {
			e.naive[j] += math.Abs(v/watts-1) / float64(e.n)
		}
		if list[i].own != nil {
			e.ownN++
			e.own += list[i].own.Off()
		}
	}
	e.own /= float64(max(1, e.ownN))
	return e
}

// TestComponentsHalveOnCard checks the same figure as TestComponentsHalve on the kernels of today's program: the built-in components,
// and those fitted to this card, have at most half of the error of the best naive model, and of power by utilisation.
func TestComponentsHalveOnCard(t *testing.T) {
	r := newComponents(t).recordedKernels(t)
	e, s := errorsOn(r.below()), r.own.Quality.Span
	if e.n < 46 || e.least > 213 || e.most < 680 || e.mean > slices.Min(e.naive)/2 || e.mean > 0.06 {
		t.Errorf("built-in: %+v", e)
	}
	if s.Kernels < 38 || s.Least > 213 || s.Most < 680 || s.Mean > slices.Min(s.Naive)/2 || s.Mean > 0.05 {
		t.Errorf("fitted to this card: %+v", *s)
	}
}

// onCard writes the recorded kernels.
func (c *components) onCard(b *bytes.Buffer, t *testing.T, r *recordedCard) {
	all, s := errorsOn(r.below()), r.own.Quality.Span
	same := errorsOn(slices.DeleteFunc(r.below(), func(k cardKernel) bool { return k.own == nil }))
	fmt.Fprintf(b, componentsCard, r.own.CardID, r.own.Date, r.readings, len(r.kernels), all.n, all.least, all.most, inPercent(all.mean),
		inPercent(slices.Min(all.naive[:2])), inPercent(all.naive[2]), s.Kernels, s.Least, s.Most, inPercent(s.Mean), inPercent(s.BestNaive()), inPercent(s.Naive[2]), inPercent(same.mean), s.Low, all.least,
		wattsOf(c.model, "awake"), wattsOf(r.own, "awake"), wattsOf(c.model, "static"), wattsOf(r.own, "static"),
		wattsOf(r.own, "any multiprocessor awake"), wattsOf(c.model, "memory sensor's offset"), wattsOf(r.own, "memory sensor's offset"))
	for _, g := range []struct {
		name string
		has  func(p *component.Prediction) bool
	}{
		{"all", func(*component.Prediction) bool { return true }},
		{"held out", func(p *component.Prediction) bool { return p.HeldOut }},
		{"below the built-in components' least", func(p *component.Prediction) bool { return p.Reading.Watts < c.model.Quality.Span.Least }},
		{"with rests", func(p *component.Prediction) bool { return p.Idle > 0 }},
		{"on at most half of the multiprocessors", func(p *component.Prediction) bool { return p.Awake <= 0.5 }},
		{"reads", func(p *component.Prediction) bool { return strings.HasPrefix(p.Name, "read") }},
		{"copies and fills", func(p *component.Prediction) bool {
			return p.Type == 0 && !strings.HasPrefix(p.Name, "read") && p.Asked > 0
		}},
		{"products", func(p *component.Prediction) bool { return p.Type != 0 }},
	} {
		e := errorsOn(slices.DeleteFunc(r.below(), func(k cardKernel) bool { return !g.has(&k.builtIn) }))
		fmt.Fprintf(b, "| %s | %d | %.0f to %.0f | %s | %s | %s | %s | %s | %s, of %d |\n", g.name, e.n, e.least, e.most, inPercent(e.mean), inPercent(e.worst),
			inPercent(e.naive[0]), inPercent(e.naive[1]), inPercent(e.naive[2]), inPercent(e.own), e.ownN)
	}
	b.WriteString(componentsWorst)
	list := r.below()
	slices.SortStableFunc(list, func(x, y cardKernel) int { return cmp.Compare(y.builtIn.Off(), x.builtIn.Off()) })
	for _, k := range list[:8] {
		p, own := &k.builtIn, "–"
		if k.own != nil {
			own = fmt.Sprintf("%.0f W, %s", k.own.Predicted.Watts, offBy(k.own.Predicted.Watts, p.Reading.Watts))
		}
		fmt.Fprintf(b, "| %s | %.0f W | %.0f W, %s | %s |\n", shown(p.Name), p.Reading.Watts, p.Predicted.Watts, offBy(p.Predicted.Watts, p.Reading.Watts), own)
	}
	c.cardPairs(b, t, r)
}

// cardPairs writes the pairs of kernels that differ in one component.
func (c *components) cardPairs(b *bytes.Buffer, t *testing.T, r *recordedCard) {
	pairs, err := probe.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	kernels := map[string]*cardKernel{}
	for i := range r.kernels {
		kernels[r.kernels[i].builtIn.Name] = &r.kernels[i]
	}
	b.WriteString(componentsCardPairs)
	for _, p := range pairs {
		x, y := kernels[p.Kernels[0]], kernels[p.Kernels[1]]
		fmt.Fprintf(b, "| %s | %s | %s |", shown(p.Kernels[0]), shown(p.Kernels[1]), p.Component)
		if x == nil || y == nil {
			b.WriteString(" – | – | – | – | – | – |\n")
			continue
		}
		one, other := &x.builtIn, &y.builtIn
		fmt.Fprintf(b, " %s W | %s W | %s W | %s W | %s W | %s W |\n", minus(other.Reading.Watts-one.Reading.Watts),
			minus(other.Predicted.Watts-one.Predicted.Watts), minus(y.own.Predicted.Watts-x.own.Predicted.Watts), minus(*other.MemoryWatts-*one.MemoryWatts),
			minus(c.model.Sensor(other.Predicted)-c.model.Sensor(one.Predicted)), minus(r.own.Sensor(y.own.Predicted)-r.own.Sensor(x.own.Predicted)))
	}
}

// wattsOf is a coefficient with its error.
func wattsOf(m *component.Model, name string) string {
	i := slices.IndexFunc(m.Coefficients, func(c component.Coefficient) bool { return c.Name == name })
	return fmt.Sprintf("%.0f ± %.0f W", m.Coefficients[i].Value, m.Coefficients[i].Error)
}

// scope is a power reading of NVML over time, in watts. It has no samples where NVML does not support it.
type scope struct {
	name            string
	seconds, watts  []float64
	unsupported, of int // samples
}

// powerScopes reads the samples of NVML's power by field and scope.
func powerScopes(t *testing.T) (list []*scope) {
	t.Helper()
	f, err := os.Open(recorded + "components/H200-214c-scopes.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := csv.NewReader(f)
	lines.Comment = '#'
	rows, err := lines.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for column, name := range rows[0] {
		if !strings.HasPrefix(name, "average") && !strings.HasPrefix(name, "instant") {
			continue
		}
		s := &scope{name: name, of: len(rows) - 1}
		for _, row := range rows[1:] {
			if row[column] == "e3" {
				s.unsupported++
				continue
			}
			at, err := strconv.ParseFloat(row[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			milliwatts, err := strconv.ParseFloat(row[column], 64)
			if err != nil {
				t.Fatal(err)
			}
			s.seconds, s.watts = append(s.seconds, at), append(s.watts, milliwatts/1000)
		}
		list = append(list, s)
	}
	return list
}

// rise is the median time of changes of more than 100 W at their steepest slope. It is the length of a running mean, whose change
// after a step is a ramp.
func (s *scope) rise() float64 {
	var all []float64
	for begin := 0; begin+1 < len(s.watts); {
		end, steepest := begin, 0.0
		for end+1 < len(s.watts) && (s.watts[end+1]-s.watts[end])*(s.watts[begin+1]-s.watts[begin]) > 0 {
			steepest = max(steepest, math.Abs(s.watts[end+1]-s.watts[end])/(s.seconds[end+1]-s.seconds[end]))
			end++
		}
		if change := math.Abs(s.watts[end] - s.watts[begin]); change > 100 {
			all = append(all, change/steepest)
		}
		begin = max(end, begin+1)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// scopes writes which power readings the card has.
func (c *components) scopes(b *bytes.Buffer, t *testing.T) {
	b.WriteString(componentsScopes)
	names := map[byte]string{'0': "card", '1': "module", '2': "memory"}
	for _, s := range powerScopes(t) {
		field, which := s.name[:len(s.name)-1], names[s.name[len(s.name)-1]]
		switch {
		case s.unsupported == s.of:
			fmt.Fprintf(b, "| %s | %s | not supported | – |\n", which, field)
		case s.unsupported > 0:
			t.Errorf("%s of the %s fails at times", field, which)
		default:
			fmt.Fprintf(b, "| %s | %s | %.0f to %.0f W | %.1f s |\n", which, field, slices.Min(s.watts), slices.Max(s.watts), s.rise())
		}
	}
}
