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

// wholeRecord is what bench/whole.sh writes for one conversion, measured by `verify --gpu --whole`.
type wholeRecord struct {
	Passes string `json:"passes"`
	// SNR is the lowest output SNR of a layer in dB, predicted for inputs of equal power in every channel.
	SNR    float64             `json:"lowest_snr_db"`
	Energy measure.WholeReport `json:"energy"`
}

// wholeEarlier holds the printed figures of a run whose windows were not kept.
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

// wholeRecords names the recorded conversions in the page's order.
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

// wholePages holds the records that the page is written from.
type wholePages struct {
	plans          []wholeRecord
	earlier        wholeEarlier
	speed          wholePyTorch
	pytorch        wholePyTorch // energy, in the run of the plans
	pytorchEarlier wholePyTorch
}

// TestWholePage checks that docs/whole-model.md and its plot agree with the records.
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

// step finds a record's step by its phase, batch and context; nil if it was not measured.
func (r wholeRecord) step(phase string, batch, context int) *measure.WholeStep {
	for i, s := range r.Energy.Steps {
		if s.Phase == phase && s.Batch == batch && s.Context == context {
			return &r.Energy.Steps[i]
		}
	}
	return nil
}

// ratio writes the change of energy that PyTorch measured for a folder; a dash if it did not.
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

This page gives the energy of a whole model per token, before and after a conversion. Every operation of the model runs
on the GPU: embedding, norms, attention with a KV cache, linear layers, head. The model has the layers of an 8 B Llama in
16 blocks instead of 32: hidden size 4096, FFN size 14336, 32 query heads, 8 KV heads. Its 3.75 B weights are random, in
BF16, and come from `+"`lowtoggle synth`"+`. The card is one %s, measured on %s.
The records are in [bench/results/h200](../bench/results/h200) (whole-*.json).

| step | passes | energy per token (95 %% interval) | time per token | mJ per token, before → after | power in W, before → after | linear layers' share of energy |
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
*Before* is the source model, *after* is the converted one. The linear layers' share is measured on the source, by running
its linear layers alone. *Capped* means that the card was at its power limit with the source. Every step is also measured
with a copy of the source, which should show no difference; † marks a step where it does. Each step was measured for 18 s,
which is one block of windows, so the intervals are wide.

`)
	for _, r := range p.plans {
		fmt.Fprintf(&b, "- `%s`: the lowest output SNR of a layer is %.1f dB. The copies differ from the source by %s of energy.\n", r.Passes, r.SNR, nulls(r))
	}
	b.WriteString(`
At the card's power limit (prefill, and here decode from 64 sequences on) a conversion raises speed: the card computes
more tokens per second at the same power. Below the limit it lowers power at the same speed. A larger batch has a smaller
saving: attention reads the KV cache of every sequence, so the linear layers' share of a decode step falls.

![joules per token against the batch, before and after](whole-model.svg)

## An earlier run

An earlier run used another H200. Only its printed figures were kept. Afterwards [bench/whole.py](../bench/whole.py)
measured the same folders with PyTorch:

| step | passes | energy per token (95 % interval) | copy's energy | time per token | mJ per token, before | power in W, before → after | energy with PyTorch, ± standard error |
|---|---|---|---|---|---|---|---|
`)
	for _, s := range p.earlier.Steps {
		name := (&measure.WholeStep{Phase: s.Phase, Batch: s.Batch, Context: s.Context}).Name()
		fmt.Fprintf(&b, "| %s | `%s` | %s %% (%s) | %s %% | %s %% | %s | %.0f → %.0f | %s |\n", name, s.Passes, signed(change(s.Relative), 1), spanOf(s.Interval),
			signed(change(s.Null), 1), signed(change(s.RelativeTime), 1), millijoules(s.Joules), s.Watts[0], s.Watts[1], p.pytorchEarlier.ratio(s.Passes, s.Phase, s.Batch, s.Context))
	}
	fmt.Fprintf(&b, `
In the first run PyTorch measured `+"`scale,grid=4`"+` too: %s of energy in decode (batch 16) and %s in prefill.

## Speed compared with PyTorch

PyTorch %s ran the same steps on the same card in the same run, as eager operations in a CUDA graph:

| step | lowtoggle, time per step | PyTorch, time per step | lowtoggle's speed relative to PyTorch |
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

The script makes the model, converts it, and measures source, output and a copy of the source in random order
([measuring.md](measuring.md)). It converts for prefill, the default, so ` + "`scale`" + ` gives no layer the common power that it gives in
decode ([scaling.md](scaling.md)). TIME=60s gives narrower intervals. For a model of your own, use
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

// nulls writes the range of the copies' changes of energy, in per cent.
func nulls(r wholeRecord) string {
	low, high := 0.0, 0.0
	for _, s := range r.Energy.Steps {
		low, high = min(low, change(s.Run.Null.RelativeEnergy)), max(high, change(s.Run.Null.RelativeEnergy))
	}
	return fmt.Sprintf("%s to %s %%", signed(low, 2), signed(high, 2))
}

// wholePlot draws joules per token of the decode steps against the batch.
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
