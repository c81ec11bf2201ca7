package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/chart"
	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/transform"
)

// componentsPostfix names the file of components beside that of a calibration.
const componentsPostfix = "-components.json"

// simulatedShrink makes a simulated card's kernels small: it multiplies nothing.
const simulatedShrink = 32

// calibrateComponents is calibrate --components.
func calibrateComponents(c *cli.Context, out string) error {
	if c.Bool("full") || c.IsSet("time") {
		return usagef("--full and --time are about patterns: --components measures one list of kernels, in some three minutes")
	}
	picture := c.String("output")
	if err := checkPicture(picture); err != nil {
		return err
	}
	file := out + componentsPostfix
	var m *component.Model
	var err error
	switch from := c.StringSlice("from"); {
	case len(from) > 1:
		return usagef("--components --from takes one file: components are those of one card")
	case len(from) == 1 && c.IsSet("device"):
		return usagef("--device is about measuring, and --from measures nothing")
	case len(from) == 1:
		m, err = refitComponents(from[0], file)
	default:
		m, err = measureComponents(c, file)
	}
	if m == nil {
		return err
	}
	r := componentsJSON{File: file, Model: m}
	r.advise()
	if failed := replaceFile(picture, r.picture()); failed != nil {
		return failed
	}
	if c.Bool("json") {
		if failed := printJSON(c.App.Writer, r); failed != nil {
			return failed
		}
	} else {
		r.print(c.App.Writer)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errShort, err)
	}
	return nil
}

func refitComponents(from, file string) (*component.Model, error) {
	m, err := component.Read(from)
	if err != nil {
		return nil, err
	}
	if err := m.Fit(); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return m, m.Write(file)
}

func measureComponents(c *cli.Context, file string) (m *component.Model, err error) {
	machine, err := openMachine(c.String("device"), 0)
	if err != nil {
		return nil, err
	}
	defer closing(&err, machine.Close)
	shrink := 1
	if machine.Platform() == nil {
		shrink = simulatedShrink
	}
	list, err := probe.Stresses(shrink)
	if err != nil {
		return nil, err
	}
	event, end := newProgress(c)
	defer end()
	o := probe.ComponentOptions{Progress: func(done, total int, _ component.Reading) {
		event(transform.Event{Stage: "measure", Done: int64(done), Total: int64(total)})
	}}
	o.Meter.Date, o.Meter.Command = time.Now(), command(os.Args[1:]...)
	m, err = probe.Components(c.Context, machine, file, list, o)
	if err != nil && c.Context.Err() != nil {
		return nil, fmt.Errorf("%w: what was measured is kept in %s; the same command goes on", err, file)
	}
	return m, err
}

// componentsJSON is what calibrate --components --json prints.
type componentsJSON struct {
	File string `json:"file"`
	*component.Model
	// Advice is for layers of the shapes of Llama 3's 8B.
	Advice []*component.Advice `json:"advice,omitempty"`
}

// usualLayers are the shapes [N,K] of a block of Llama 3's 8B, its query, key, value and output
// projections and its MLP.
var usualLayers = [][2]int{{4096, 4096}, {1024, 4096}, {1024, 4096}, {4096, 4096}, {14336, 4096}, {14336, 4096}, {4096, 14336}}

func (r *componentsJSON) advise() {
	for _, p := range phases {
		var layers []component.Gemm
		for _, s := range usualLayers {
			layers = append(layers, probe.GEMM(gemm.Problem{M: p.tokens, N: s[0], K: s[1], Type: gemm.BF16}, p.cold, nil, nil))
		}
		kernels, err := phaseKernels(r.Model, layers)
		if err != nil {
			continue
		}
		if a, err := r.Model.Advise(p.name, kernels); err == nil {
			r.Advice = append(r.Advice, a)
		}
	}
}

// phases of serving a model.
var phases = []struct {
	name   string
	tokens int
	cold   bool
}{{"prefill", defaultTokens, false}, {"decode", decodeTokens, true}}

// phaseKernels are layers that run one after the other.
func phaseKernels(m *component.Model, layers []component.Gemm) ([]component.Kernel, error) {
	all := 0.0
	for _, g := range layers {
		all += g.Bytes()
	}
	var kernels []component.Kernel
	for i, g := range layers {
		g.L2, g.Around = m.L2, all-g.Bytes()
		k, err := g.Kernel(fmt.Sprintf("layer %d", i+1))
		if err != nil {
			return nil, err
		}
		kernels = append(kernels, k)
	}
	return kernels, nil
}

// partNames as tables head them.
var partNames = map[component.Part]string{component.Static: "static", component.Awake: "awake", component.Multipliers: "multi-\npliers",
	component.OnChip: "on\nchip", component.HBM: "HBM"}

// partCells are a split's watts, and its heads.
func partCells(s component.Split) (cells []string) {
	for _, share := range s.Parts {
		cells = append(cells, fmt.Sprintf("%.0f", share.Watts))
	}
	return cells
}

func partHeads() (heads []string) {
	for _, p := range component.Parts() {
		heads = append(heads, partNames[p])
	}
	return heads
}

func (r *componentsJSON) print(w io.Writer) {
	fmt.Fprintf(w, "%s: watts of kernels, measured, predicted at the measured clock and by component\n\n", r.Card)
	for _, held := range []bool{false, true} {
		r.kernels(w, held)
	}
	r.coefficients(w)
	q := r.Quality
	fmt.Fprintln(w)
	remark(w, "fit", fmt.Sprintf("%d kernels; %d of them, each predicted without itself, are off by %.1f %% on average, at worst by %.1f %% (%s); without the others something could not be told",
		q.Kernels, q.Judged, 100*q.Mean, 100*q.Worst, q.WorstKernel))
	if q.HeldOut > 0 {
		remark(w, "held out", fmt.Sprintf("%s that the fit never saw: off by %.1f %% on average, at worst by %.1f %%", plural(q.HeldOut, "kernel", "kernels"), 100*q.HeldOutMean, 100*q.HeldOutWorst))
	}
	if q.Drift > 0 {
		remark(w, "drift", fmt.Sprintf("a kernel that was measured again and again changed by up to %.1f %%", 100*q.Drift))
	}
	if !r.Sensed {
		remark(w, "note", "the card does not tell its memory's own power: HBM holds the way to it on the chip as well")
	}
	for _, typ := range r.Types() {
		if l := r.Limits[typ]; l > 0 {
			remark(w, "limit", fmt.Sprintf("in %s the card holds back its clock at %.0f T operations a second, however little they draw", typ, l/1e12))
		}
	}
	for _, a := range r.Advice {
		remarks(w, "clock", a.Text())
	}
	if len(r.Advice) > 0 {
		remark(w, "note", fmt.Sprintf("clocks are predicted, for layers of Llama 3's 8B shapes in BF16; none below %.0f MHz was measured", r.LowestMeasured()))
	}
	if r.Simulated {
		remark(w, "note", simulatedNote)
	}
	fmt.Fprintf(w, "written: %s\n", r.File)
}

// kernels prints those of the fit, or those that were held out.
func (r *componentsJSON) kernels(w io.Writer, held bool) {
	head := "kernel"
	if held {
		head = "held out"
	}
	tab := newTable(append([]string{head, "measured", "pre-\ndicted", "error"}, partHeads()...)...)
	seen := map[string]bool{}
	for _, reading := range r.Readings {
		if reading.HeldOut != held || seen[reading.Name] {
			continue
		}
		seen[reading.Name] = true
		s, err := r.Split(reading.Kernel)
		if err != nil {
			continue // it was fitted to
		}
		cells := []string{reading.Name, watts(reading.Watts), watts(s.Watts), percent(s.Watts / reading.Watts)}
		tab.add(append(cells, partCells(s)...)...)
	}
	if len(tab.rows) > 0 {
		tab.print(w)
		fmt.Fprintln(w)
	}
}

func (r *componentsJSON) coefficients(w io.Writer) {
	tab := newTable("at the highest clock", "component", "value", "±", "")
	for _, c := range r.Coefficients {
		value, unit := 1.0, c.Unit
		if unit == "J" {
			value, unit = 1e12, "pJ"
		}
		if c.Value == 0 && c.Error == 0 { // no kernel has any of it
			tab.add(c.Name, string(c.Part), "–", "–", unit)
			continue
		}
		tab.add(c.Name, string(c.Part), fmt.Sprintf("%.3g", value*c.Value), fmt.Sprintf("%.2g", value*c.Error), unit)
	}
	tab.print(w)
}

// picture is a bar for every kernel, of its components.
func (r *componentsJSON) picture() []byte {
	p := chart.Panel{Title: r.Card + ": power by component, predicted", X: chart.Axis{Label: "W", With: []float64{0}}}
	for _, part := range component.Parts() {
		p.PartNames = append(p.PartNames, string(part))
	}
	seen := map[string]bool{}
	for _, reading := range r.Readings {
		s, err := r.Split(reading.Kernel)
		if err != nil || seen[reading.Name] {
			continue
		}
		seen[reading.Name] = true
		bar := chart.Bar{Name: reading.Name}
		for _, share := range s.Parts {
			bar.Parts = append(bar.Parts, share.Watts)
		}
		p.Bars = append(p.Bars, bar)
	}
	return chart.Chart{Panels: []chart.Panel{p}}.SVG()
}

func watts(v float64) string { return fmt.Sprintf("%.0f W", v) }
