package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// wholeRecord is what bench/whole.sh writes of a plan: `verify --gpu --whole` of its conversion.
type wholeRecord struct {
	Passes string `json:"passes"`
	// SNR is the lowest output SNR of a layer in dB, predicted for inputs as large in every channel.
	SNR    float64             `json:"lowest_snr_db"`
	Energy measure.WholeReport `json:"energy"`
}

// wholeEarlier are the printed figures of a run whose windows were not kept.
type wholeEarlier struct {
	Steps []struct {
		Passes       string    `json:"passes"`
		Phase        string    `json:"phase"`
		Batch        int       `json:"batch"`
		Context      int       `json:"context"`
		Relative     float64   `json:"relative_energy"`
		Interval     []float64 `json:"interval"`
		RelativeTime float64   `json:"relative_time"`
		Null         float64   `json:"null"`
		Joules       float64   `json:"joules_per_token"`
		Watts        []float64 `json:"watts"`
	} `json:"steps"`
}

// wholePyTorch is what bench/whole.py writes.
type wholePyTorch struct {
	Torch   string   `json:"torch"`
	Folders []string `json:"folders"`
	Steps   []struct {
		Phase    string    `json:"phase"`
		Batch    int       `json:"batch"`
		Context  int       `json:"context"`
		Seconds  float64   `json:"seconds"`
		Relative []float64 `json:"relative_energy"`
		Error    []float64 `json:"standard_error"`
	} `json:"steps"`
}

// wholeRecords are the recorded plans in the page's order.
var wholeRecords = []string{"fine", "coarse"}

func readWhole[T any](t *testing.T, name string) (v T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("results", "h200", "whole-"+name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// wholePages are the records that the page is made of.
type wholePages struct {
	plans          []wholeRecord
	earlier        wholeEarlier
	speed          wholePyTorch
	pytorch        wholePyTorch // energy, in the run of the plans
	pytorchEarlier wholePyTorch
}

// TestWholePage: docs/whole-model.md and its plot are those of the records.
func TestWholePage(t *testing.T) {
	p := wholePages{
		earlier: readWhole[wholeEarlier](t, "earlier"), speed: readWhole[wholePyTorch](t, "pytorch"),
		pytorch: readWhole[wholePyTorch](t, "pytorch-energy"), pytorchEarlier: readWhole[wholePyTorch](t, "pytorch-earlier"),
	}
	for _, name := range wholeRecords {
		p.plans = append(p.plans, readWhole[wholeRecord](t, name))
	}
	goldenfile.Same(t, "../docs/whole-model.md", p.page())
	goldenfile.Same(t, "../docs/whole-model.svg", wholePlot(p.plans))
}

// step is a record's step of the same work; nil if it was not measured.
func (r wholeRecord) step(phase string, batch, context int) *measure.WholeStep {
	for i, s := range r.Energy.Steps {
		if s.Phase == phase && s.Batch == batch && s.Context == context {
			return &r.Energy.Steps[i]
		}
	}
	return nil
}

// ratio writes what PyTorch measured of a plan; a dash if it did not.
func (p wholePyTorch) ratio(passes, phase string, batch, context int) string {
	at := slices.Index(p.Folders, passes)
	for _, s := range p.Steps {
		if at >= 0 && s.Phase == phase && s.Batch == batch && s.Context == context && at < len(s.Relative) {
			return fmt.Sprintf("%s %% ± %.1f", signed(change(s.Relative[at]), 1), 100*s.Error[at])
		}
	}
	return "–"
}

func spanOf(v []float64) string {
	return fmt.Sprintf("%s … %s", signed(change(v[0]), 1), signed(change(v[1]), 1))
}

func (p wholePages) page() []byte {
	var b bytes.Buffer
	all := p.plans[len(p.plans)-1].Energy // has every step
	fmt.Fprintf(&b, `# Joules per token of a whole model

<!-- written by go test -run WholePage -update ./bench -->

What does a conversion save of all that a GPU spends on a token, not of the linear layers alone? Every operation of the
model runs on the GPU: embedding, norms, attention with a KV cache, linear layers, head. The model has the shapes of an
8 B Llama with 16 blocks (hidden 4096, 14336, 32 and 8 heads; 3.75 B random weights in BF16, made by lowtoggle synth).
The card is one %s; the date is %s.

| step | plan | energy, 95 %% | time | mJ per token | power, W | linear layers |
|---|---|---|---|---|---|---|
`, all.GPU, day(all))
	for _, work := range all.Steps {
		for _, r := range p.plans {
			s := r.step(work.Phase, work.Batch, work.Context)
			if s == nil {
				continue
			}
			note := ""
			if !s.Run.Valid {
				note = " †"
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s %% (%s)%s | %s %% | %s → %s | %.0f → %.0f%s | %.0f %% |\n", s.Name(), r.Passes,
				signed(change(s.Relative), 1), spanOf(s.Interval), note, signed(change(s.RelativeTime), 1),
				millijoules(s.Before.Joules), millijoules(s.After.Joules), s.Before.Watts, s.After.Watts, cappedNote(*s), 100*s.LinearEnergy)
		}
	}
	b.WriteString(`
*Linear layers* is the share of the source's energy that its linear layers take when they run alone. † marks a step whose
copy of the source differs from the source. Each step had 18 s, room for one block of windows, so the intervals are wide.

`)
	for _, r := range p.plans {
		fmt.Fprintf(&b, "- `%s`: the lowest output SNR of a layer is %.1f dB. Copies of the source read %s.\n", r.Passes, r.SNR, nulls(r))
	}
	b.WriteString(`
At the card's power limit (prefill, and here decode from 64 sequences on) the saving is speed: the same power does more
tokens a second. Below it the saving is power at the same speed. The larger the batch, the smaller is the linear layers'
share of a decode step, and with it the saving: attention reads the KV cache of every sequence.

![joules per token against the batch, before and after](whole-model.svg)

## Another run

Of an earlier run, on another card of the kind, only the printed figures were kept. PyTorch measured the same folders
by [bench/whole.py](../bench/whole.py) after it:

| step | plan | energy, 95 % | copy | time | mJ per token | power, W | energy by PyTorch, ± standard error |
|---|---|---|---|---|---|---|---|
`)
	for _, s := range p.earlier.Steps {
		name := (&measure.WholeStep{Phase: s.Phase, Batch: s.Batch, Context: s.Context}).Name()
		fmt.Fprintf(&b, "| %s | `%s` | %s %% (%s) | %s %% | %s %% | %s | %.0f → %.0f | %s |\n", name, s.Passes, signed(change(s.Relative), 1), spanOf(s.Interval),
			signed(change(s.Null), 1), signed(change(s.RelativeTime), 1), millijoules(s.Joules), s.Watts[0], s.Watts[1], p.pytorchEarlier.ratio(s.Passes, s.Phase, s.Batch, s.Context))
	}
	fmt.Fprintf(&b, `
In the run above, PyTorch read %s (decode, batch 16) and %s (prefill) for `+"`scale,grid=4`"+`.

## Speed beside PyTorch

The same steps by PyTorch %s, eager operations in a CUDA graph, on the same card in the same run:

| step | lowtoggle | PyTorch | ratio of speeds |
|---|---|---|---|
`, p.pytorch.ratio("coarse", "decode", 16, 1024), p.pytorch.ratio("coarse", "prefill", 1, 4096), p.speed.Torch)
	for _, s := range all.Steps {
		for _, q := range p.speed.Steps {
			if q.Phase == s.Phase && q.Batch == s.Batch && q.Context == s.Context {
				ours := s.Run.Baseline.Seconds
				fmt.Fprintf(&b, "| %s | %.2f ms | %.2f ms | %.2f |\n", s.Name(), 1e3*ours, 1e3*q.Seconds, q.Seconds/ours)
			}
		}
	}
	b.WriteString(`
## How to repeat it

    bench/whole.sh LOWTOGGLE FOLDER

It makes the model, converts it by each plan, and measures source, output and a copy in random turns (see
[measuring.md](measuring.md)); TIME=60s gives narrower intervals. For a model of your own:
` + "`lowtoggle verify MODEL OUT --gpu --whole`" + `.
`)
	return b.Bytes()
}

func day(r measure.WholeReport) string {
	if len(r.Steps) == 0 || len(r.Steps[0].Run.Date) < 10 {
		return "unknown"
	}
	return r.Steps[0].Run.Date[:10]
}

func millijoules(v float64) string {
	if v >= 1 {
		return fmt.Sprintf("%.0f", 1e3*v)
	}
	return fmt.Sprintf("%.3g", 1e3*v)
}

func cappedNote(s measure.WholeStep) string {
	if s.Before.Capped != nil && *s.Before.Capped {
		return ", capped"
	}
	return ""
}

// nulls are the changes of the copies, in per cent.
func nulls(r wholeRecord) string {
	low, high := 0.0, 0.0
	for _, s := range r.Energy.Steps {
		low, high = min(low, change(s.Run.Null.RelativeEnergy)), max(high, change(s.Run.Null.RelativeEnergy))
	}
	return fmt.Sprintf("%s to %s %%", signed(low, 2), signed(high, 2))
}

// wholePlot draws joules per token of decode steps over the batch.
func wholePlot(records []wholeRecord) []byte {
	panel := chart.Panel{X: chart.Axis{Label: "batch (sequences that decode together)", Log: 2}, Y: chart.Axis{Label: "mJ per token", Log: 10}, Height: 320}
	line := func(name string, style int, cost func(s measure.WholeStep) float64, r wholeRecord) {
		l := chart.Line{Name: name, Style: chart.Style{Colour: style, Marker: 1 + style}}
		for _, s := range r.Energy.Steps {
			if s.Phase == "decode" {
				l.X, l.Y = append(l.X, float64(s.Batch)), append(l.Y, 1e3*cost(s))
				l.Titles = append(l.Titles, fmt.Sprintf("%s: %s mJ per token", s.Name(), millijoules(cost(s))))
			}
		}
		if len(l.X) > 1 {
			panel.Lines = append(panel.Lines, l)
		}
	}
	last := records[len(records)-1]
	line("source", 0, func(s measure.WholeStep) float64 { return s.Before.Joules }, last)
	line(last.Passes, 1, func(s measure.WholeStep) float64 { return s.After.Joules }, last)
	return chart.Chart{Title: "Energy of a decode step, whole model", Panels: []chart.Panel{panel}}.SVG()
}
