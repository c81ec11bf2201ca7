package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// wholePlan is a conversion.
type wholePlan struct {
	Passes string `json:"passes"`
	// SNR is the lowest output SNR of a layer in dB, predicted for inputs of equal power in every channel.
	SNR float64 `json:"lowest_snr_db"`
}

// wholeRecord is the file that bench/whole.sh writes for some conversions of a model, which one run of `verify --gpu --whole`
// compares.
type wholeRecord struct {
	wholePlan                     // the output
	Others    []wholePlan         `json:"others"`
	Energy    measure.WholeReport `json:"energy"`
}

// wholeRow is a conversion in a step.
type wholeRow struct {
	wholePlan
	measure.WholeOther
	step measure.WholeStep
}

// card returns the id of the record's card.
func (r wholeRecord) card() string { return r.Energy.Steps[0].Run.Card.ID() }

// rows returns a record's conversions, step by step.
func (r wholeRecord) rows() (rows []wholeRow) {
	for _, s := range r.Energy.Steps {
		rows = append(rows, wholeRow{r.wholePlan, measure.WholeOther{Relative: s.Relative, Interval: s.Interval,
			RelativeTime: s.RelativeTime, TimeInterval: s.TimeInterval, After: s.After}, s})
		for i, o := range s.Others {
			rows = append(rows, wholeRow{r.Others[i], o, s})
		}
	}
	return rows
}

// wholePredictions are the predicted energies of the linear layers alone, relative to the source.
type wholePredictions struct {
	Predictions []wholePrediction `json:"predictions"`
}

type wholePrediction struct {
	wholePlan
	Relative float64    `json:"relative_energy"`
	Interval [2]float64 `json:"interval"`
}

// wholePyTorch is the file that bench/whole.py writes.
type wholePyTorch struct {
	Torch   string   `json:"torch"`
	Folders []string `json:"folders"`
	Steps   []struct {
		Phase    string    `json:"phase"`
		Batch    int       `json:"batch"`
		Context  int       `json:"context"`
		Seconds  float64   `json:"seconds"`
		Joules   []float64 `json:"joules"` // of a step
		Relative []float64 `json:"relative_energy"`
		Error    []float64 `json:"standard_error"`
	} `json:"steps"`
}

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
	decode, prefill wholeRecord // of the best plans
	batches         wholeRecord // other batch sizes
	coarse          wholeRecord // of an earlier run at fixed addresses
	speed           wholePyTorch
	both            wholeRecord  // of the run that PyTorch also measured
	earlier         wholeRecord  // the same, on another card
	pytorch         wholePyTorch // the same models in that run
	predicted       []wholePrediction
	// the recipes themselves, on other cards; recipe32 is decode with batch 32
	recipePrefill, recipeDecode, recipe32 wholeRecord
}

const balancedDecode = "--recipe balanced --workload decode"

// TestWholePage checks that docs/whole-model.md and its plot agree with the records.
func TestWholePage(t *testing.T) {
	p := wholePages{
		decode: readWhole[wholeRecord](t, "decode"), prefill: readWhole[wholeRecord](t, "prefill"), batches: readWhole[wholeRecord](t, "batches"),
		coarse: readWhole[wholeRecord](t, "coarse"), speed: readWhole[wholePyTorch](t, "pytorch"), both: readWhole[wholeRecord](t, "both"),
		earlier: readWhole[wholeRecord](t, "earlier"), pytorch: readWhole[wholePyTorch](t, "pytorch-energy"),
		predicted:     readWhole[wholePredictions](t, "predicted").Predictions,
		recipePrefill: readWhole[wholeRecord](t, "recipes-prefill"), recipeDecode: readWhole[wholeRecord](t, "recipes-decode"), recipe32: readWhole[wholeRecord](t, "recipes-32"),
	}
	goldenfile.Same(t, "../docs/whole-model.md", p.page(t))
	goldenfile.Same(t, "../docs/whole-model.svg", p.plot())
}

func spanOf(v []float64) string { return span(v, 1) }

func span(v []float64, decimals int) string {
	return fmt.Sprintf("%s … %s", signed(change(v[0]), decimals), signed(change(v[1]), decimals))
}

// row finds a conversion's row; nil if it was not measured.
func (r wholeRecord) row(passes string) *wholeRow {
	for _, row := range r.rows() {
		if row.Passes == passes {
			return &row
		}
	}
	return nil
}

const wholeTable = `| step | passes | lowest SNR | energy per token (95 %% interval) | time per token | mJ per token, before → after | power in W, before → after | linear layers' share of energy |
|---|---|---|---|---|---|---|---|
`

func (r wholeRow) line(b *bytes.Buffer) {
	fmt.Fprintf(b, "| %s | `%s` | %.1f dB | %s %% (%s) | %s %% | %s → %s | %.0f → %.0f%s | %.0f %% |\n", r.step.Name(), r.Passes, r.SNR,
		signed(change(r.Relative), 1), spanOf(r.Interval), signed(change(r.RelativeTime), 1), millijoules(r.step.Before.Joules), millijoules(r.After.Joules),
		r.step.Before.Watts, r.After.Watts, cappedNote(r.step), 100*r.step.LinearEnergy)
}

// copyLine is the row of the copy of the source.
func copyLine(b *bytes.Buffer, s measure.WholeStep) {
	fmt.Fprintf(b, "| %s | *a copy of the source* | – | %s %% (%s) | %s %% | | | |\n", s.Name(),
		signed(change(s.Run.Null.RelativeEnergy), 2), span(s.Run.Null.Interval, 2), signed(change(s.Run.Null.RelativeTime), 1))
}

func (p wholePages) page(t *testing.T) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# How much energy per token does a whole model use, before and after?

<!-- written by go test -run WholePage -update ./bench -->

This page gives the energy per token of a whole model, before and after a conversion. Every operation of the model runs on the
GPU: embedding, norms, attention with a KV cache, linear layers, head. The model has the layer shapes of an 8 B Llama (hidden size 4096,
FFN size 14336, 32 query heads, 8 KV heads), but 16 blocks instead of 32. The 3.75 B weights are random, in BF16, and
come from `+"`lowtoggle synth`"+`. One %s (%s) was measured on %s. The records are in [bench/results/h200](../bench/results/h200)
(whole-*.json).

`+wholeTable, p.decode.Energy.GPU, p.decode.card(), day(p.decode.Energy))
	for _, r := range []wholeRecord{p.decode, p.prefill} {
		for _, row := range r.rows() {
			row.line(&b)
		}
		for _, s := range r.Energy.Steps {
			copyLine(&b, s)
		}
	}
	uncached, grid := p.decode.row("scale=uncached,grid=4"), p.decode.row("grid=4")
	fmt.Fprintf(&b, `
*Before* is the source model, *after* is the converted model. Changes are relative to the source. To measure the linear layers' share,
the source's linear layers ran alone. *Capped* means that the card was at its power limit with the source. In decode, the conversions
with `+"`scale`"+` were made with `+"`--workload decode`"+`. All other conversions were made for prefill.

- **The error.** A copy of the source should show no difference. All models and the copy were measured in turns. Between
  blocks of readings, the models exchanged their places in memory. So each model was measured at the addresses of every other model.
  The addresses alone change the copy's time per token in decode by up to %.1f %%.
- **Scaling in decode.** `+"`grid=4`"+` saves %.1f %% of energy per token without `+"`scale=uncached`"+` and %.1f %% with
  `+"`scale=uncached`"+`.
- **Accuracy** cannot be measured with random weights and inputs. The table has the lowest predicted output SNR of a layer instead, for
  inputs of equal power in every channel.

At the card's power limit a conversion raises speed: the card computes more tokens per second at the same power. On this
page, prefill runs at the limit, and so does decode with batch 64 or 256. Below the limit a conversion lowers power at the same
speed.

## Other batch sizes

The conversion `+"`%s`"+` was also measured with batches 1 and 64, on %s. An earlier run measured a similar
conversion, `+"`%s`"+`, with batch 256 for 18 s, at fixed addresses. In the earlier run, copies differed
from the source by %s of energy.

`+wholeTable, p.addressEffect(), -change(grid.Relative), -change(uncached.Relative),
		uncached.Passes, day(p.batches.Energy), p.coarse.Passes, nulls(p.coarse))
	for _, row := range p.byBatch() {
		row.line(&b)
	}
	p.batchesExplained(&b)
	b.WriteString(`
![joules per token against the batch, before and after](whole-model.svg)
`)
	p.compare(&b)
	fmt.Fprintf(&b, `
In the earlier run at fixed addresses, PyTorch %s ran these steps as eager operations in a CUDA graph. The table compares the times
of the source:

| step | lowtoggle, time per step | PyTorch, time per step | lowtoggle's speed relative to PyTorch |
|---|---|---|---|
`, p.speed.Torch)
	for _, s := range p.coarse.Energy.Steps {
		for _, q := range p.speed.Steps {
			if q.Phase == s.Phase && q.Batch == s.Batch && q.Context == s.Context {
				ours := s.Run.Baseline.Seconds
				fmt.Fprintf(&b, "| %s | %.2f ms | %.2f ms | %.2f |\n", s.Name(), 1e3*ours, 1e3*q.Seconds, q.Seconds/ours)
			}
		}
	}
	p.limit(&b)
	p.serverSection(&b)
	p.billSection(&b, t)
	b.WriteString(`
## How to repeat the measurements

    bench/whole.sh LOWTOGGLE FOLDER

The script makes and converts the model. Then the script measures the source, the converted models and a copy of the source in random
order ([measuring.md](measuring.md)). The script also measures some of these models with PyTorch. TURNS=2 measures twice as long. For a model of your
own, use ` + "`lowtoggle verify MODEL OUT --gpu --whole`" + `. The option ` + "`--also OUT2`" + ` measures another converted model in the
same run.
`)
	return b.Bytes()
}

// compare shows what lowtoggle and PyTorch measured in one run.
func (p wholePages) compare(b *bytes.Buffer) {
	fmt.Fprintf(b, `
## Compared with PyTorch

On %s lowtoggle measured two of these conversions on another card, %[3]s. PyTorch %[2]s then measured the same models on this card
([bench/whole.py](../bench/whole.py)).

| step | passes | change of energy in lowtoggle (95 %% interval) | change of energy in PyTorch ± standard error | J per step of the source, lowtoggle and PyTorch | J saved per step, lowtoggle and PyTorch |
|---|---|---|---|---|---|
`, day(p.both.Energy), p.pytorch.Torch, p.both.card())
	largest := 0.0
	for _, row := range p.both.rows() {
		at := slices.Index(p.pytorch.Folders, strings.ReplaceAll(row.Passes, "=", ""))
		for _, s := range p.pytorch.Steps {
			if at < 0 || s.Phase != row.step.Phase || s.Batch != row.step.Batch || s.Context != row.step.Context {
				continue
			}
			largest = max(largest, math.Abs(change(row.Relative)-change(s.Relative[at])))
			ours, theirs := row.step.Before.Joules*float64(row.step.Tokens), s.Joules[0]
			fmt.Fprintf(b, "| %s | `%s` | %s %% (%s) | %s %% ± %.1f | %.2f, %.2f | %.2f, %.2f |\n", row.step.Name(), row.Passes,
				signed(change(row.Relative), 1), spanOf(row.Interval), signed(change(s.Relative[at]), 1), 100*s.Error[at],
				ours, theirs, ours*(1-row.Relative), theirs*(1-s.Relative[at]))
		}
	}
	for _, s := range p.both.Energy.Steps {
		fmt.Fprintf(b, "| %s | *a copy of the source* | %s %% (%s) | – | | |\n", s.Name(), signed(change(s.Run.Null.RelativeEnergy), 2), span(s.Run.Null.Interval, 2))
	}
	fmt.Fprintf(b, `
The savings measured by lowtoggle and by PyTorch differ by at most %.1f percentage points. PyTorch's separate operations take more
energy for a step than lowtoggle's kernels. So the linear layers' saving is a smaller share of PyTorch's energy.
`, largest)
}

// limit shows what conversions of each SNR save in prefill, predicted and measured.
func (p wholePages) limit(b *bytes.Buffer) {
	prefill := p.prefill.Energy.Steps[0]
	fmt.Fprintf(b, `
## How much can a conversion save in prefill?

Coarser values save more energy and lower the SNR. In the run of the first table, the linear layers take %.0f %% of the energy of a
prefill of 4096 tokens. The predicted saving of the linear layers, multiplied by this share, is close to the whole model's saving in
this run. On two other cards the measured saving was a quarter to a third larger than in this run. The reason is not known. The table has
changes of energy:

| passes | lowest SNR | linear layers, predicted (95 %% interval) | whole model, predicted | whole model, measured on %s | whole model, measured on %s | whole model, measured on %s |
|---|---|---|---|---|---|---|
`, 100*prefill.LinearEnergy, p.prefill.card(), p.earlier.card(), p.both.card())
	for _, q := range p.predicted {
		fmt.Fprintf(b, "| `%s` | %.1f dB | %s %% (%s) | %s %% | %s | %s | %s |\n", q.Passes, q.SNR, signed(change(q.Relative), 1), spanOf(q.Interval[:]),
			signed(prefill.LinearEnergy*change(q.Relative), 1), p.prefill.prefillOf(q.Passes), p.earlier.prefillOf(q.Passes), p.both.prefillOf(q.Passes))
	}
	fmt.Fprintf(b, `
At equal SNR, no pass in the table has a larger predicted saving than a grid. According to these predictions, a grid with an SNR of
about %.0f dB saves 4 %% of the whole model's energy. A grid with an SNR of about %.0f dB saves 6 %%.
`, p.gridSNR(0.04/prefill.LinearEnergy), p.gridSNR(0.06/prefill.LinearEnergy))
}

// gridSNR returns the lowest SNR of the grid that is predicted to save a share of the linear layers' energy. It interpolates
// between the predictions and returns NaN outside them.
func (p wholePages) gridSNR(saving float64) float64 {
	last := wholePrediction{Relative: 1, wholePlan: wholePlan{SNR: math.NaN()}}
	for _, q := range p.predicted {
		if !strings.HasPrefix(q.Passes, "grid=") {
			continue
		}
		if q.Relative <= 1-saving {
			return q.SNR + (last.SNR-q.SNR)*(1-saving-q.Relative)/(last.Relative-q.Relative)
		}
		last = q
	}
	return math.NaN()
}

// prefillOf returns a conversion's measured energy in prefill, or a dash if it was not measured.
func (r wholeRecord) prefillOf(passes string) string {
	for _, row := range r.rows() {
		if row.Passes == passes && row.step.Phase == "prefill" {
			return fmt.Sprintf("%s %% (%s)", signed(change(row.Relative), 1), spanOf(row.Interval))
		}
	}
	return "–"
}

// addressEffect returns the largest change of a copy's time per token in one arrangement of the memory, in per cent. It reads
// decode steps below the power limit, where time does not depend on the weights' bits.
func (p wholePages) addressEffect() (largest float64) {
	for _, s := range p.decode.Energy.Steps {
		off := map[int][]float64{} // by arrangement
		for _, block := range s.Run.Blocks {
			seconds := map[string][]float64{}
			for _, w := range block.Windows {
				seconds[w.Load] = append(seconds[w.Load], w.Seconds)
			}
			for i, v := range seconds[s.Run.Null.Name] {
				off[block.Arrangement] = append(off[block.Arrangement], change(v/seconds[s.Run.Baseline.Name][i]))
			}
		}
		for _, list := range off {
			largest = max(largest, math.Abs(stat.Mean(list, nil)))
		}
	}
	return largest
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

// byBatch returns the decode steps of the plan for decode, by batch: each from the most exact record that has it.
func (p wholePages) byBatch() (rows []wholeRow) {
	rows = append(rows, *p.decode.row("scale=uncached,grid=4"))
	for _, row := range append(p.batches.rows(), p.coarse.rows()...) {
		if row.step.Phase == "decode" && !slices.ContainsFunc(rows, func(r wholeRow) bool { return r.step.Batch == row.step.Batch }) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b wholeRow) int { return a.step.Batch - b.step.Batch })
	return rows
}

// plot draws joules per token of the decode steps against the batch.
func (p wholePages) plot() []byte {
	panel := chart.Panel{X: chart.Axis{Label: "batch (sequences that decode together)", Log: 2}, Y: chart.Axis{Label: "mJ per token", Log: 10}, Height: 320}
	line := func(name string, style int, cost func(wholeRow) float64) {
		l := chart.Line{Name: name, Style: chart.Style{Colour: style, Marker: 1 + style}}
		for _, row := range p.byBatch() {
			l.X, l.Y = append(l.X, float64(row.step.Batch)), append(l.Y, 1e3*cost(row))
			l.Titles = append(l.Titles, fmt.Sprintf("%s, %s: %s mJ per token", row.step.Name(), row.Passes, millijoules(cost(row))))
		}
		panel.Lines = append(panel.Lines, l)
	}
	line("source", 0, func(r wholeRow) float64 { return r.step.Before.Joules })
	line("converted", 1, func(r wholeRow) float64 { return r.After.Joules })
	return chart.Chart{Title: "Energy of a decode step, whole model", Panels: []chart.Panel{panel}}.SVG()
}
