package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// TestComponentsPage checks that docs/components.md, docs/components-accuracy.md and its plot agree with the built-in components and the recorded
// readings of other cards, predicted by today's code.
func TestComponentsPage(t *testing.T) {
	c := newComponents(t)
	card := c.recordedKernels(t)
	goldenfile.Same(t, "../docs/components.md", c.page(t, card))
	goldenfile.Same(t, "../docs/components-accuracy.md", c.accuracyPage(t, card))
	goldenfile.Same(t, "../docs/components-unseen.svg", c.plot())
}

// TestComponentsHalve checks the page's main result: on unseen kernels below the power cap, of the components' card and of
// others, the model's error is at most half of the best naive model's, and half of that of power by utilisation, too. On other
// cards it also beats the constant that fits their readings best.
func TestComponentsHalve(t *testing.T) {
	c := newComponents(t)
	s := c.model.Quality.Span
	if s.Kernels < 15 || s.Mean > 0.05 || s.Mean > s.BestNaive()/2 || s.Mean > s.Naive[len(s.Naive)-1]/2 || s.Least > 300 || s.Most < 650 {
		t.Errorf("the components' card: %+v", *s)
	}
	others := c.sumUp("", c.below())
	if others.n < 600 || len(others.cards) < 5 || others.mean > 0.04 || others.least > 320 || others.most < 680 {
		t.Errorf("other cards: %+v", others)
	}
	for i, name := range append(component.NaiveNames(), "the best constant") {
		if e := append(others.naive, c.bestConstant())[i]; others.mean > e/2 {
			t.Errorf("other cards: the model is off by %.1f %%, %s by %.1f %%", 100*others.mean, name, 100*e)
		}
	}
	for _, l := range c.layers(t) {
		if most := map[string]float64{"prefill": 0.05, decode: 0.15}[l.name]; math.Abs(l.predicted/l.measured-1) > most {
			t.Errorf("layers in %s: %.0f W, measured %.0f", l.name, l.predicted, l.measured)
		}
	}
	if sensor := c.sumUp("", slices.DeleteFunc(c.below(), func(o elsewhere) bool { return !strings.Contains(o.Name, "cold") })); !(sensor.sensor < 5) || sensor.memory < 130 {
		t.Errorf("decode: the memory's sensor reads %.0f W above its offset, off by %.1f W", sensor.memory, sensor.sensor)
	}
}

// components holds the built-in model and the readings of other cards.
type components struct {
	model  *component.Model
	others []elsewhere
}

func newComponents(t *testing.T) *components {
	t.Helper()
	m, err := component.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	return &components{m, otherCards(t, m)}
}

// below returns the other cards' readings below the cap.
func (c *components) below() []elsewhere {
	return slices.DeleteFunc(slices.Clone(c.others), func(o elsewhere) bool { return !o.Spans })
}

// atCap returns the other cards' readings at the cap.
func (c *components) atCap() []elsewhere {
	return slices.DeleteFunc(slices.Clone(c.others), func(o elsewhere) bool { return !o.AtCap })
}

// bestConstant returns the least mean error of a constant on the other cards' readings below the cap.
func (c *components) bestConstant() float64 {
	best := math.Inf(1)
	list := c.below()
	for watts := 150.; watts <= 690; watts++ {
		sum := 0.0
		for _, o := range list {
			sum += math.Abs(watts/o.Reading.Watts - 1)
		}
		best = min(best, sum/float64(len(list)))
	}
	return best
}

// cardsSum sums up readings of other cards.
type cardsSum struct {
	name        string
	n           int
	cards       []string
	least, most float64 // watts
	mean, worst float64
	naive       []float64
	// memory is the mean of the memory's sensor above its offset, in watts, predicted that of the split, and sensor the
	// mean error of the predicted reading.
	memory, predicted, sensor float64
}

func (c *components) sumUp(name string, list []elsewhere) (s cardsSum) {
	s = cardsSum{name: name, n: len(list), least: math.Inf(1), naive: make([]float64, len(component.NaiveNames()))}
	n := float64(len(list))
	for i := range list {
		o := &list[i]
		if !slices.Contains(s.cards, o.card) {
			s.cards = append(s.cards, o.card)
		}
		watts := o.Reading.Watts
		s.least, s.most = min(s.least, watts), max(s.most, watts)
		s.mean += o.Off() / n
		s.worst = max(s.worst, o.Off())
		for j, v := range o.Naive {
			s.naive[j] += math.Abs(v/watts-1) / n
		}
		sensor := c.model.Sensor(o.Predicted)
		offset := sensor - o.Predicted.Of(component.HBM).Watts
		s.memory += (*o.MemoryWatts - offset) / n
		s.predicted += (sensor - offset) / n
		s.sensor += math.Abs(sensor-*o.MemoryWatts) / n
	}
	return s
}

// shapes returns the readings by product, in the order of the files.
func (c *components) shapes(list []elsewhere) (sums []cardsSum) {
	by := map[string][]elsewhere{}
	var names []string
	for _, o := range list {
		name := shapeOf(o.Name)
		if by[name] == nil {
			names = append(names, name)
		}
		by[name] = append(by[name], o)
	}
	for _, name := range names {
		sums = append(sums, c.sumUp(name, by[name]))
	}
	return sums
}

// shapeOf returns the name of a series without its role: "BF16 16×8192×8192 from memory".
func shapeOf(series string) string {
	words := strings.Split(series, "-")
	size := strings.ReplaceAll(words[1], "x", "×")
	if !strings.Contains(size, "×") {
		size += "³"
	}
	name := strings.ToUpper(words[0]) + " " + size
	if words[len(words)-1] == "cold" {
		name += " from memory"
	}
	return name
}

// layersPower is the power of a small model's linear layers.
type layersPower struct {
	name, card          string
	measured, predicted float64
}

// layers returns the layers of llama-17m, which no fit has seen, at the time, clock and temperature of their records. Their
// operands are taken as random.
func (c *components) layers(t *testing.T) (list []layersPower) {
	t.Helper()
	for _, l := range []struct{ name, file string }{{"prefill", "layers-stationary"}, {decode, "layers-decode-stationary"}, {decode, "level-decode"}} {
		run := recordedRun(t, l.file)
		stack := max(1, run.Stack)
		var kernels []component.Kernel
		for _, p := range run.Products {
			stacked := p.Problem
			stacked.N *= stack
			g := measure.ComponentGEMM(stacked, run.Cold, p.Kernel, run.Platform, &c.model.Facts)
			g.Around = c.model.L2 // the other layers
			k, err := g.Kernel(l.name, &c.model.Facts)
			if err != nil {
				t.Fatal(err)
			}
			k.Temperature = *run.Baseline.Temperature
			for range p.Count {
				kernels = append(kernels, k)
			}
		}
		s, err := c.model.SplitSequence(c.model.Timed(kernels, run.Baseline.Seconds*float64(stack), *run.Baseline.SMClock))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, layersPower{l.name, run.Card.ID(), run.Baseline.Watts, s.Watts})
	}
	return list
}

// memoryPair is weights beside the baseline of the same session: the kernel and the card are
// the same. Time and clock are nearly the same, except in FP16, where the baseline runs at the power cap.
type memoryPair struct {
	watts, predicted        float64 // differences from the baseline
	memory, predictedMemory float64
}

// pairs of products that read their weights from memory.
func (c *components) pairs() (list []memoryPair) {
	type mean struct{ n, watts, predicted, memory, predictedMemory float64 }
	baselines := map[int]*mean{}
	for i := range c.others {
		o := &c.others[i]
		if !o.baseline || !strings.HasSuffix(o.Name, "cold") {
			continue
		}
		b := baselines[o.session]
		if b == nil {
			b = new(mean)
			baselines[o.session] = b
		}
		b.n++
		b.watts += o.Reading.Watts
		b.predicted += o.Predicted.Watts
		b.memory += *o.MemoryWatts
		b.predictedMemory += o.Predicted.Of(component.HBM).Watts
	}
	for i := range c.others {
		o := &c.others[i]
		b := baselines[o.session]
		if b == nil || o.baseline {
			continue
		}
		list = append(list, memoryPair{o.Reading.Watts - b.watts/b.n, o.Predicted.Watts - b.predicted/b.n,
			*o.MemoryWatts - b.memory/b.n, o.Predicted.Of(component.HBM).Watts - b.predictedMemory/b.n})
	}
	return list
}

// page returns the page of the model by component: its terms, coefficients and use.
func (c *components) page(t *testing.T, card *recordedCard) []byte {
	var b bytes.Buffer
	m := c.model
	on := m.CardID
	if on == "" {
		on = "an H200 whose id was not recorded"
	}
	fmt.Fprintf(&b, componentsIntroduction, 1e6*m.Launch, m.Quality.Kernels, on, m.Date)
	fmt.Fprintf(&b, componentsUse, c.advice())
	c.parts(&b)
	c.scopes(&b, t)
	list, err := probe.Stresses(1)
	if err != nil {
		t.Fatal(err)
	}
	held, unread := 0, 0
	for _, s := range list {
		if s.HeldOut {
			held++
		}
		if !slices.ContainsFunc(card.kernels, func(k cardKernel) bool { return k.builtIn.Name == s.Name }) {
			unread++
		}
	}
	has := "all these"
	if unread > 0 {
		has = fmt.Sprintf("%d of these %d", len(list)-unread, len(list))
	}
	fmt.Fprintf(&b, componentsRemains, len(list)-held, held, card.own.CardID, has)
	return b.Bytes()
}

// accuracyPage compares predicted with measured power.
func (c *components) accuracyPage(t *testing.T, card *recordedCard) []byte {
	var b bytes.Buffer
	c.accuracy(&b)
	c.elsewhere(&b)
	b.WriteString(componentsLayers)
	for _, l := range c.layers(t) {
		fmt.Fprintf(&b, "| %s | %s | %.0f W | %.0f W, %s |\n", l.name, l.card, l.measured, l.predicted, offBy(l.predicted, l.measured))
	}
	c.onCard(&b, t, card)
	c.sensor(&b)
	return b.Bytes()
}

// advice returns sentences about the advice of the built-in components on layers of Llama 3 8B, in prefill and in decode.
func (c *components) advice() string {
	var text []string
	for _, phase := range []struct {
		name   string
		tokens int
		cold   bool
	}{{"prefill", 4096, false}, {decode, 16, true}} {
		g := component.Gemm{Type: arith.BF16, M: phase.tokens, N: 14336, K: 4096, Cold: phase.cold}
		g.Bits, g.Moved = c.model.Facts.Random(g.Type)
		k, err := g.Kernel("layer", &c.model.Facts)
		if err == nil {
			_, err = c.model.Advise(phase.name, []component.Kernel{k})
		}
		if err == nil {
			text = append(text, fmt.Sprintf("With the built-in components, the commands advise a clock for %s in BF16.", phase.name))
		} else {
			_, why, _ := strings.Cut(err.Error(), "on these kernels: ")
			text = append(text, fmt.Sprintf("They advise no clock for %s: %s.", phase.name, strings.Replace(why, "; at most", ". At most", 1)))
		}
	}
	return term.Wrap(strings.Join(text, " "), "- ", "  ", 120)
}

func inPercent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// minus returns a number of watts with the typographic minus sign.
func minus(watts float64) string { return strings.ReplaceAll(fmt.Sprintf("%.0f", watts), "-", "−") }

func offBy(predicted, measured float64) string {
	return strings.ReplaceAll(fmt.Sprintf("%+.1f %%", 100*(predicted/measured-1)), "-", "−")
}

// shown returns a kernel's name as the page writes it.
func shown(name string) string {
	return productName.ReplaceAllStringFunc(name, func(product string) string {
		return strings.ReplaceAll(strings.ToUpper(product), "X", "×")
	})
}

// productName matches a product's type and shape in a kernel's name.
var productName = regexp.MustCompile(`[\w-]+ \d+x\d+x\d+`)

// accuracy writes the unseen kernels of the components' card.
func (c *components) accuracy(b *bytes.Buffer) {
	m := c.model
	s, at := m.Quality.Span, m.Quality.AtCap
	fmt.Fprintf(b, componentsAccuracy, s.Low, s.High, s.Kernels, s.Least, s.Most, inPercent(s.Mean), inPercent(s.BestNaive()))
	b.WriteString("\n| kernel | measured | predicted | constant | duty | utilisation |\n|---|---|---|---|---|---|\n")
	for _, p := range m.Unseen() {
		if p.Spans {
			w := p.Reading.Watts
			fmt.Fprintf(b, "| %s | %.0f W | %.0f W, %s | %s | %s | %s |\n", shown(p.Name), w, p.Predicted.Watts, offBy(p.Predicted.Watts, w),
				offBy(p.Naive[0], w), offBy(p.Naive[1], w), offBy(p.Naive[2], w))
		}
	}
	fmt.Fprintf(b, "| **mean error** | | **%s** | %s | %s | %s |\n", inPercent(s.Mean), inPercent(s.Naive[0]), inPercent(s.Naive[1]), inPercent(s.Naive[2]))
	fmt.Fprintf(b, componentsCap, at.Kernels, inPercent(at.Mean), inPercent(at.Naive))
	b.WriteString("\n| held out, at or near the cap | measured | predicted | clock, measured | clock, predicted |\n|---|---|---|---|---|\n")
	for _, p := range m.Unseen() {
		if p.HeldOut && !p.Spans {
			fmt.Fprintf(b, "| %s | %.0f W | %.0f W, %s | %.0f MHz | %.0f MHz |\n", shown(p.Name), p.Reading.Watts, p.Predicted.Watts,
				offBy(p.Predicted.Watts, p.Reading.Watts), p.Clock, m.Clock([]component.Kernel{p.Reading.Kernel}))
		}
	}
}

// elsewhere writes the readings of other cards.
func (c *components) elsewhere(b *bytes.Buffer) {
	all := c.sumUp("all", c.below())
	fmt.Fprintf(b, componentsElsewhere, all.n, len(all.cards), all.least, all.most, inPercent(all.mean), inPercent(slices.Min(all.naive[:2])), inPercent(c.bestConstant()))
	b.WriteString("\n| product | readings | cards | watts | mean error | worst | constant | duty | utilisation |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range append(c.shapes(c.below()), all) {
		cards := fmt.Sprint(len(s.cards))
		if s.name != all.name {
			cards = strings.Join(s.cards, ", ")
		}
		fmt.Fprintf(b, "| %s | %d | %s | %.0f to %.0f | %s | %s | %s | %s | %s |\n", s.name, s.n, cards, s.least, s.most, inPercent(s.mean), inPercent(s.worst),
			inPercent(s.naive[0]), inPercent(s.naive[1]), inPercent(s.naive[2]))
	}
	cap := c.sumUp("", c.atCap())
	fmt.Fprintf(b, componentsElsewhereCap, cap.n, len(cap.cards), inPercent(cap.mean), c.model.Facts.Clock.Exponent.Usual)
	b.WriteString("\n| exponent | below the cap | at the cap |\n|---|---|---|\n")
	for _, e := range []float64{0.75, 1, 1.25} {
		other := *c.model
		other.Facts.Clock.Exponent.Usual = e
		if err := other.Fit(); err != nil {
			panic(err) // the same readings as before
		}
		var off [2]float64
		for i, list := range [][]elsewhere{c.below(), c.atCap()} {
			for _, o := range list {
				p := other.Compare(o.Reading)
				off[i] += p.Off() / float64(len(list))
			}
		}
		fmt.Fprintf(b, "| %.2f | %s | %s |\n", e, inPercent(off[0]), inPercent(off[1]))
	}
}

// sensor writes the comparison with the memory's sensor.
func (c *components) sensor(b *bytes.Buffer) {
	b.WriteString(componentsSensor)
	b.WriteString("\n| product | readings | sensor above its offset | predicted | mean error |\n|---|---|---|---|---|\n")
	for _, s := range c.shapes(c.others) {
		fmt.Fprintf(b, "| %s | %d | %s W | %.0f W | %.0f W |\n", s.name, s.n, minus(s.memory), s.predicted, s.sensor)
	}
	pairs := c.pairs()
	var watts, memory, watt, mem, predicted, predictedMemory float64
	least, leastMemory := 0.0, 0.0
	for _, p := range pairs {
		watts += math.Abs(p.watts) / float64(len(pairs))
		watt += math.Abs(p.predicted-p.watts) / float64(len(pairs))
		memory += math.Abs(p.memory) / float64(len(pairs))
		mem += math.Abs(p.predictedMemory-p.memory) / float64(len(pairs))
		predicted += math.Abs(p.predicted) / float64(len(pairs))
		predictedMemory += math.Abs(p.predictedMemory) / float64(len(pairs))
		least, leastMemory = min(least, p.watts), min(leastMemory, p.memory)
	}
	fmt.Fprintf(b, componentsPairs, len(pairs), -least, watts, watt, -leastMemory, memory, mem, predicted/watts, predictedMemory/memory)
}

// parts writes the coefficients.
func (c *components) parts(b *bytes.Buffer) {
	b.WriteString("\n## Coefficients\n\n" + componentsCoefficients + "\n| coefficient | component | value | ± |\n|---|---|---|---|\n")
	for _, k := range c.model.Coefficients {
		value, unit := 1.0, k.Unit
		if unit == "J" {
			value, unit = 1e12, "pJ"
		}
		fmt.Fprintf(b, "| %s | %s | %.3g %s | %.2g |\n", k.Name, cmp.Or(k.Part, "–"), value*k.Value, unit, value*k.Error)
	}
}

// plot draws predicted over measured power: components, and power by duty beside them.
func (c *components) plot() []byte {
	line := func(name string, style chart.Style) *chart.Line {
		return &chart.Line{Name: name, Style: style, Scattered: true}
	}
	add := func(l *chart.Line, title string, measured, predicted float64) {
		l.X, l.Y, l.Titles = append(l.X, measured), append(l.Y, predicted), append(l.Titles, title)
	}
	own, others := line("by component, the components' card", chart.Style{Colour: 2, Marker: 1}), line("by component, other cards", chart.Style{Colour: 4, Marker: 4, Hollow: true})
	duty, utilisation := line("by duty, the components' card", chart.Style{Colour: 3, Marker: 5}), line("by utilisation, the components' card", chart.Style{Colour: 5, Marker: 3, Hollow: true})
	for _, p := range c.model.Unseen() {
		if p.Spans {
			add(own, p.Name, p.Reading.Watts, p.Predicted.Watts)
			add(duty, p.Name+", by duty", p.Reading.Watts, p.Naive[1])
			add(utilisation, p.Name+", by utilisation", p.Reading.Watts, p.Naive[2])
		}
	}
	for _, o := range c.below() {
		add(others, o.Name, o.Reading.Watts, o.Predicted.Watts)
	}
	same := chart.Line{Name: "measured", Style: chart.Style{Colour: 0, Dashes: 1}, X: []float64{250, 700}, Y: []float64{250, 700}}
	title := "Unseen kernels below the power cap: predicted power over measured power"
	return chart.Chart{Title: title, Panels: []chart.Panel{{X: chart.Axis{Label: "measured, W"}, Y: chart.Axis{Label: "predicted, W"}, Height: 480,
		Lines: []chart.Line{*others, *duty, *utilisation, *own, same}}}}.SVG()
}
