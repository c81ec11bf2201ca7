package card

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// componentsPostfix is the end of the name of the components' file beside a calibration.
const componentsPostfix = "-components.json"

// simulatedShrink divides the sizes of a simulated card's kernels, because a simulated card computes no products.
const simulatedShrink = 32

// calibrateComponents is calibrate --components.
func calibrateComponents(c *cli.Context, out string) error {
	if c.Bool("full") || c.IsSet("time") {
		return exit.Usagef("--full and --time do not apply to --components, which measures a fixed list of kernels in about two minutes: leave --full and --time out")
	}
	picture := c.String("output")
	if err := outfile.CheckOutput(picture, nil, outfile.SVG, outfile.PNG); err != nil {
		return err
	}
	file := out + componentsPostfix
	if err := outfile.Check(file); err != nil {
		return err
	}
	from := c.StringSlice("from")
	if len(from) > 1 {
		return exit.Usagef("--components --from takes one file: give one --from")
	}
	r := componentsJSON{File: file, refitted: len(from) > 0}
	if r.refitted && (c.IsSet("device") || c.IsSet("anew")) {
		return exit.Usagef("--device and --anew do not apply to --from, which measures nothing: leave them out")
	}
	lock, err := lockComponents(file)
	if err != nil {
		return err
	}
	defer lock.Close() // nil on systems without locks
	if r.refitted {
		r.Model, err = refitComponents(from[0], file)
	} else {
		err = r.measure(c)
	}
	if r.Model == nil {
		return err
	}
	r.assess()
	if c.Bool("json") {
		if failed := term.JSON(c.App.Writer, r); failed != nil {
			return failed
		}
	} else {
		r.print(c.App.Writer)
	}
	if failed := outfile.WriteChart(c, picture, r.picture()); failed != nil {
		return failed
	}
	if err == nil && r.Unfit != "" {
		return exit.ErrShort
	}
	if err != nil {
		return fmt.Errorf("%w: %w", exit.ErrShort, err)
	}
	return nil
}

func refitComponents(from, file string) (*component.Model, error) {
	m, err := component.Refit(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--from: %w", weights.Absent(from, "there is no such file: name a file that lowtoggle calibrate --components has written"))
	}
	if err == nil {
		err = m.MayReplace(file)
	}
	if err == nil {
		err = m.Write(file)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// measure measures the kernels that the file lacks. After an error, the model is nil or covers fewer kernels.
func (r *componentsJSON) measure(c *cli.Context) (err error) {
	machine, err := openMachine(c.String("device"), 0)
	if err != nil {
		return err
	}
	defer exit.CloseAll(&err, machine.Close)
	shrink := 1
	if machine.Platform() == nil {
		shrink = simulatedShrink
	}
	list, err := probe.Stresses(shrink)
	if err != nil {
		return err
	}
	event, end := term.Progress(c)
	defer end()
	o := probe.ComponentOptions{Anew: c.Bool("anew"), Progress: func(done, total int, _ component.Reading) {
		r.Measured = done
		event(transform.Event{Stage: "measure", Done: int64(done), Total: int64(total)})
	}}
	o.Meter.Date, o.Meter.Command = time.Now(), term.CommandLine(os.Args[1:]...)
	r.Model, err = probe.Components(c.Context, machine, r.File, list, o)
	if err != nil && c.Context.Err() != nil {
		return r.brokenOff(err, o.Anew)
	}
	return err
}

// brokenOff returns the error of an interrupted measurement. The error says how many readings are kept and how to
// continue.
func (r *componentsJSON) brokenOff(err error, anew bool) error {
	left, failed := component.Read(r.File)
	if failed != nil {
		return fmt.Errorf("%w before the first kernel was measured: nothing was written", err)
	}
	same := "run the same command"
	if anew {
		same += " without --anew"
	}
	return fmt.Errorf("%w: %s kept in %s; %s to continue", err, term.Plural(len(left.Readings), "reading is", "readings are"), r.File, same)
}

// componentsJSON is the output of calibrate --components --json.
type componentsJSON struct {
	File string `json:"file"`
	*component.Model
	// Measured is the number of new readings; the others were in the file.
	Measured int `json:"measured_now"`
	// Unfit says which prediction errors are too large for Advice; empty if none is.
	Unfit string `json:"unfit,omitempty"`
	// Advice advises clocks for layers with the shapes of Llama 3 8B. Refused has a reason for each phase without advice.
	Advice  []*component.Advice `json:"advice,omitempty"`
	Refused []string            `json:"advice_refused,omitempty"`

	refitted bool // from a file, without measuring
}

// usualLayers are the shapes [N,K] of a block of Llama 3 8B: query, key, value and output projections and MLP.
var usualLayers = [][2]int{{4096, 4096}, {1024, 4096}, {1024, 4096}, {4096, 4096}, {14336, 4096}, {14336, 4096}, {4096, 14336}}

// assess rates the fit, and adds advice if it is good enough.
func (r *componentsJSON) assess() {
	if err := r.Verdict(); err != nil {
		r.Unfit = err.Error()
		return
	}
	for _, p := range phases {
		var layers []component.Gemm
		for _, s := range usualLayers {
			layers = append(layers, measure.ComponentGEMM(gemm.Problem{M: p.tokens, N: s[0], K: s[1], Type: arith.BF16}, p.cold, nil, nil, &r.Model.Facts))
		}
		kernels, err := measure.LayerKernels(r.Model, layers)
		if err != nil {
			continue
		}
		if a, err := r.Model.Advise(p.name, kernels); err == nil {
			r.Advice = append(r.Advice, a)
		} else {
			r.Refused = append(r.Refused, fmt.Sprintf("%s: no clock is advised: %v", p.name, err))
		}
	}
}

// phases are the phases of serving a model.
var phases = []struct {
	name   string
	tokens int
	cold   bool
}{{"prefill", operand.PrefillTokens, false}, {"decode", operand.DecodeTokens, true}}

// partNames are the column heads of tables.
var partNames = map[component.Part]string{component.Static: "static", component.Awake: "awake", component.Multipliers: "multi-\npliers",
	component.OnChip: "on\nchip", component.HBM: "HBM"}

// partsNote explains the columns of the components.
const partsNote = "static: power without work; awake: multiprocessors that have work; multipliers: arithmetic; on chip: data on the way " +
	"to the multipliers; HBM: the card's memory"

// partName names a part within a line.
func partName(p component.Part) string {
	if p == component.HBM {
		return "HBM"
	}
	return string(p)
}

// partCells formats a split's watts, one cell for each part.
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

// how returns "measured" or "simulated".
func how(simulated bool) string {
	if simulated {
		return "simulated"
	}
	return "measured"
}

func (r *componentsJSON) print(w io.Writer) {
	title := fmt.Sprintf("%s: kernel power at the same clock, %s in total, and predicted in total and by component", printable.Quote(r.Card), how(r.Simulated))
	fmt.Fprintln(w, term.Wrap(title, "", "  ", term.Width))
	for _, held := range []bool{false, true} {
		r.kernels(w, held)
	}
	r.coefficients(w)
	q := r.Quality
	fmt.Fprintln(w)
	term.Remark(w, "components", partsNote)
	term.Remark(w, "fit", fmt.Sprintf("%d kernels; leave-one-out error of power for %d of these kernels: %.1f %% on average, at worst %.1f %% (%s); the fit needs each of the other kernels",
		q.Kernels, q.LeftOut, 100*q.Mean, 100*q.Worst, q.WorstKernel))
	if q.HeldOut > 0 {
		term.Remark(w, "held out", fmt.Sprintf("%s not in the fit: error of power %.1f %% on average, at worst %.1f %%", term.Plural(q.HeldOut, "kernel", "kernels"), 100*q.HeldOutMean, 100*q.HeldOutWorst))
	}
	if s := q.Span; s != nil {
		var naive []string
		for i, name := range component.NaiveNames() {
			naive = append(naive, fmt.Sprintf("%s %.1f %%", name, 100*s.Naive[i]))
		}
		term.Remark(w, "below the cap", fmt.Sprintf("%s of %.0f to %.0f W, held out or left out of the fit in turn: mean error of power %.1f %%; of simpler models: %s",
			term.Plural(s.Kernels, "kernel", "kernels"), s.Least, s.Most, 100*s.Mean, strings.Join(naive, ", ")))
	}
	if c := q.AtCap; c != nil {
		term.Remark(w, "at the cap", fmt.Sprintf("clocks of %s: mean error %.1f %%; mean error of a constant clock: %.1f %%",
			term.Plural(c.Kernels, "held-out kernel", "held-out kernels"), 100*c.Mean, 100*c.Naive))
	}
	if q.Drift > 0 {
		term.Remark(w, "drift", fmt.Sprintf("the power of a kernel that was measured repeatedly changed by up to %.1f %%", 100*q.Drift))
	}
	if !r.Sensed {
		term.Remark(w, "note", "the card has no sensor of memory power, so the column HBM includes the on-chip path to memory")
	}
	for _, typ := range r.Types() {
		switch l, held := r.Limits[typ]; {
		case l > 0:
			term.Remark(w, "limit", fmt.Sprintf("in %s the card lowers its clock even below the power cap, and runs at most %.0f × 10¹² operations per second", typ, l/1e12))
		case held:
			term.Remark(w, "limit", fmt.Sprintf("in %s the card lowers its clock even below the power cap; the kernels are too short to show the highest rate of operations", typ))
		}
	}
	if r.Unfit != "" {
		splits := "splits of power by component are only a rough guide"
		if r.Splits() != nil {
			splits = "no splits of power by component are shown"
		}
		if !r.Simulated { // the fit never describes a simulated card
			splits += ". Warm up the card, end other processes, and measure all kernels again with --anew"
		}
		term.Remark(w, "UNFIT", r.Unfit+"; "+splits)
	}
	for _, a := range r.Advice {
		term.Remarks(w, "clock", a.Text())
	}
	term.Remarks(w, "clock", r.Refused)
	if len(r.Advice) > 0 {
		term.Remark(w, "note", fmt.Sprintf("clocks are predicted for layers of Llama 3 8B in BF16; the lowest measured clock is %.0f MHz", r.LowestMeasured()))
	}
	if r.Simulated {
		term.Remark(w, "note", simulatedNote)
	}
	if kept := len(r.Readings) - r.Measured; !r.refitted && kept > 0 {
		text := term.Plural(kept, "reading was", "readings were") + " already in the file"
		if r.Measured == 0 {
			text += ", and no kernel was measured now"
		}
		term.Remark(w, "note", text+"; --anew measures all kernels again")
	}
	fmt.Fprintf(w, "written: %s\n", printable.Quote(r.File))
}

// kernels prints the kernels of the fit, or the held-out ones.
func (r *componentsJSON) kernels(w io.Writer, held bool) {
	head := "kernel"
	if held {
		head = "held out"
	}
	tab := term.NewTable(append([]string{head, how(r.Simulated), "predicted", "error"}, partHeads()...)...)
	seen := map[string]bool{}
	for _, reading := range r.Readings {
		if reading.HeldOut != held || seen[reading.Name] {
			continue
		}
		seen[reading.Name] = true
		s, err := r.Split(reading.Kernel)
		if err != nil {
			continue // its type is not in the fit
		}
		cells := []string{reading.Name, watts(reading.Watts), watts(s.Watts), term.Change(s.Watts / reading.Watts)}
		tab.Add(append(cells, partCells(s)...)...)
	}
	if len(tab.Rows) > 0 {
		tab.Print(w)
		fmt.Fprintln(w)
	}
}

func (r *componentsJSON) coefficients(w io.Writer) {
	tab := term.NewTable("at the highest clock", "component", "value", "standard\nerror", "unit")
	for _, c := range r.Coefficients {
		value, unit := 1.0, c.Unit
		if unit == "J" {
			value, unit = 1e12, "pJ"
		}
		if c.Value == 0 && c.Error == 0 { // no kernel uses this component
			tab.Add(c.Name, partName(c.Part), "–", "–", unit)
			continue
		}
		tab.Add(c.Name, partName(c.Part), figures(value*c.Value, 3), figures(value*c.Error, 2), unit)
	}
	tab.Print(w)
}

// figures formats a number to significant digits. Digits before the point are never rounded.
func figures(v float64, digits int) string {
	if v >= math.Pow10(digits)-0.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.*g", digits, v)
}

// picture draws a bar for every kernel, divided by component.
func (r *componentsJSON) picture() chart.Chart {
	title := r.Card + ": power by component, predicted; " + how(r.Simulated) + " beside each name"
	p := chart.Panel{Title: title, X: chart.Axis{Label: "W; beside each name, " + how(r.Simulated), With: []float64{0}}}
	if r.Unfit != "" {
		_, worst := r.Quality.UnseenErrors()
		p.X.Label += fmt.Sprintf("; UNFIT: predicted power of unseen kernels is off by up to %.1f %%", 100*worst)
	}
	for _, part := range component.Parts() {
		p.PartNames = append(p.PartNames, partName(part))
	}
	seen := map[string]bool{}
	for _, reading := range r.Readings {
		s, err := r.Split(reading.Kernel)
		if err != nil || seen[reading.Name] {
			continue
		}
		seen[reading.Name] = true
		bar := chart.Bar{Name: reading.Name + ", " + watts(reading.Watts)}
		for _, share := range s.Parts {
			bar.Parts = append(bar.Parts, share.Watts)
		}
		p.Bars = append(p.Bars, bar)
	}
	return chart.Chart{Title: title, Panels: []chart.Panel{p}}
}

func watts(v float64) string { return fmt.Sprintf("%.0f W", v) }
