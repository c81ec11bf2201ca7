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

// componentsRecord are all kernels of calibrate --components on one card. componentsBefore are those on another card, interrupted.
const (
	componentsRecord = recorded + "components/H200-9ea1.json"
	componentsBefore = recorded + "components/H200-214c.json"
)

// cardKernel is a recorded kernel: predicted by the built-in components, by a fit to another card's kernels, and by a fit to the
// card's other kernels.
type cardKernel struct {
	builtIn component.Prediction
	other   *component.Prediction // nil if the other card's kernels do not determine it
	own     *component.Prediction // nil if the fit has seen it
}

// recordedCard are the kernels of a card that calibrate --components measured, and a model fitted to them.
type recordedCard struct {
	own      *component.Model
	other    *component.Model // of the other card
	readings int
	kernels  []cardKernel
}

// recordedKernels reads componentsRecord, and fits componentsBefore. The latter has only one kernel of TF32 for the fit, which
// does not determine the cost of bits.
func (c *components) recordedKernels(t *testing.T) *recordedCard {
	t.Helper()
	fitted := func(file string, without arith.Type) *component.Model {
		m, err := component.Read(file)
		if err == nil {
			m.Readings = slices.DeleteFunc(m.Readings, func(k component.Reading) bool { return without != 0 && k.Type == without })
			err = m.Fit()
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := fitted(componentsRecord, 0)
	all := m.Readings
	r := &recordedCard{own: m, other: fitted(componentsBefore, arith.TF32), readings: len(all)}
	own := map[string]*component.Prediction{}
	unseen := m.Unseen()
	for i := range unseen {
		own[unseen[i].Name] = &unseen[i]
	}
	seen := map[string]bool{}
	for _, k := range all {
		if !seen[k.Name] {
			seen[k.Name] = true
			one := cardKernel{builtIn: c.model.Compare(k), own: own[k.Name]}
			if k.Type == 0 || slices.Contains(r.other.Types(), k.Type) {
				p := r.other.Compare(k)
				one.other = &p
			}
			r.kernels = append(r.kernels, one)
		}
	}
	return r
}

// below returns the kernels below the power cap, between the watts of a span.
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
	other       float64 // of otherN kernels, with the worst of them
	otherN      int
	otherWorst  float64
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
		if p := list[i].other; p != nil {
			e.otherN++
			e.other += p.Off()
			e.otherWorst = max(e.otherWorst, p.Off())
		}
	}
	e.other /= float64(max(1, e.otherN))
	e.own /= float64(max(1, e.ownN))
	return e
}

// within returns the kernels below the power cap from some watts to others.
func (r *recordedCard) within(low, high float64) []cardKernel {
	return slices.DeleteFunc(r.below(), func(k cardKernel) bool { w := k.builtIn.Reading.Watts; return w < low || w >= high })
}

// bestConstant returns the least mean error of a constant on some kernels, which is not known in advance.
func bestConstant(list []cardKernel) float64 {
	best := math.Inf(1)
	for watts := 150.; watts <= 690; watts++ {
		sum := 0.0
		for i := range list {
			sum += math.Abs(watts/list[i].builtIn.Reading.Watts - 1)
		}
		best = min(best, sum/float64(len(list)))
	}
	return best
}

// TestComponentsHalveOnCard checks the same figure as TestComponentsHalve on the kernels of today's program, from 150 to 690 W, on a
// card that no fit has seen: the built-in components, and those fitted to another card, have at most half of the error of the best
// naive model, of power by utilisation, and of the constant that fits these kernels best. So have those fitted to this card.
func TestComponentsHalveOnCard(t *testing.T) {
	r := newComponents(t).recordedKernels(t)
	e, s := errorsOn(r.below()), r.own.Quality.Span
	naive := min(slices.Min(e.naive), slices.Min(s.Naive), bestConstant(r.below()))
	if e.n < 63 || e.least > 168 || e.most < 689 || e.mean > naive/2 || e.mean > 0.065 {
		t.Errorf("built-in: %+v; naive %.3f", e, naive)
	}
	if e.otherN < 60 || e.other > naive/2 || e.other > 0.045 {
		t.Errorf("fitted to another card: %+v; naive %.3f", e, naive)
	}
	if s.Kernels < 56 || s.Least > 168 || s.Most < 689 || s.Mean > slices.Min(s.Naive)/2 || s.Mean > 0.05 {
		t.Errorf("fitted to this card: %+v", *s)
	}
	if low := errorsOn(r.within(150, 213)); low.n < 2 || low.mean > slices.Min(low.naive)/2 || low.other > 0.05 {
		t.Errorf("150 to 213 W: %+v", low)
	}
}

// kernelGroup is a row of the table of kernels.
type kernelGroup struct {
	name string
	has  func(p *component.Prediction) bool
}

// onCard writes the recorded kernels.
func (c *components) onCard(b *bytes.Buffer, t *testing.T, r *recordedCard) {
	all, s := errorsOn(r.below()), r.own.Quality.Span
	spin := func(name string) *component.Prediction {
		return &r.kernels[slices.IndexFunc(r.kernels, func(k cardKernel) bool { return k.builtIn.Name == name })].builtIn
	}
	spins := []*component.Prediction{spin("spin"), spin("spin on 66")}
	const midLow, midHigh = 300.0, 450.0 // watts at which a constant is a good guess
	fmt.Fprintf(b, componentsCard, r.own.CardID, r.own.Date, len(r.kernels), all.n, all.least, all.most, inPercent(all.mean),
		inPercent(slices.Min(all.naive[:2])), inPercent(all.naive[2]), inPercent(bestConstant(r.below())), all.otherN, r.other.CardID, inPercent(all.other), inPercent(all.otherWorst),
		s.Kernels, inPercent(s.Mean), inPercent(s.BestNaive()), inPercent(s.Naive[2]),
		offBy(spins[0].Predicted.Watts, spins[0].Reading.Watts), offBy(spins[1].Predicted.Watts, spins[1].Reading.Watts), midLow, midHigh,
		wattsOf(c.model, "awake"), wattsOf(r.other, "awake"), wattsOf(r.own, "awake"), wattsOf(c.model, "static"), wattsOf(r.other, "static"), wattsOf(r.own, "static"),
		wattsOf(r.own, "any multiprocessor awake"), wattsOf(c.model, "memory sensor's offset"), wattsOf(r.other, "memory sensor's offset"), wattsOf(r.own, "memory sensor's offset"))
	between := func(low, high float64) kernelGroup {
		return kernelGroup{fmt.Sprintf("from %.0f to %.0f W", low, high), func(p *component.Prediction) bool { return p.Reading.Watts >= low && p.Reading.Watts < high }}
	}
	for _, g := range []kernelGroup{
		{"all", func(*component.Prediction) bool { return true }},
		between(150, 213), between(213, midLow), between(midLow, midHigh), between(midHigh, 690),
		{"held out", func(p *component.Prediction) bool { return p.HeldOut }},
		{"with rests", func(p *component.Prediction) bool { return p.Idle > 0 }},
		{"on at most half of the multiprocessors", func(p *component.Prediction) bool { return p.Awake <= 0.5 }},
		{"reads", func(p *component.Prediction) bool { return strings.HasPrefix(p.Name, "read") }},
		{"copies and fills", func(p *component.Prediction) bool {
			return p.Type == 0 && !strings.HasPrefix(p.Name, "read") && p.Asked > 0
		}},
		{"products", func(p *component.Prediction) bool { return p.Type != 0 }},
	} {
		e := errorsOn(slices.DeleteFunc(r.below(), func(k cardKernel) bool { return !g.has(&k.builtIn) }))
		fmt.Fprintf(b, "| %s | %d | %.0f to %.0f | %s | %s | %s | %s | %s | %s, of %d | %s, of %d |\n", g.name, e.n, e.least, e.most, inPercent(e.mean), inPercent(e.worst),
			inPercent(e.naive[0]), inPercent(e.naive[1]), inPercent(e.naive[2]), inPercent(e.other), e.otherN, inPercent(e.own), e.ownN)
	}
	fmt.Fprintf(b, componentsWorst, r.other.CardID)
	list := r.below()
	slices.SortStableFunc(list, func(x, y cardKernel) int { return cmp.Compare(y.builtIn.Off(), x.builtIn.Off()) })
	for _, k := range list[:8] {
		p := &k.builtIn
		beside := func(other *component.Prediction) string {
			if other == nil {
				return "–"
			}
			return fmt.Sprintf("%.0f W, %s", other.Predicted.Watts, offBy(other.Predicted.Watts, p.Reading.Watts))
		}
		fmt.Fprintf(b, "| %s | %.0f W | %s | %s | %s |\n", shown(p.Name), p.Reading.Watts, beside(p), beside(k.other), beside(k.own))
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

// wattsOf returns a coefficient with its error.
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

// rise returns the median time of changes of more than 100 W at their steepest slope. It is the length of a running mean, whose change
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

// scopes writes the table of the card's power readings.
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
