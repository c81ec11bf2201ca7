package bench

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// These notes explain the tables of docs/measured.md. Words in braces stand for figures.
const (
	patternNotes = `
- The card is at the cap ({patterns watts} W) with {stationary capped} of {patterns} sets of stationary weights, and with {streaming capped} of {patterns} sets of streaming weights.
  At the cap, energy and time fall together, and the clock rises.
- With the other weights the card draws less power, but the driver still limits the clock because of power. With all-zero
  stationary weights the card runs at {zeros clock} GHz and draws {zeros power} W. Reports call both groups capped.
- With stationary weights, rows in runs of four use as much energy as random rows ({runs stationary}), and identical rows use
  {identical stationary} less. With streaming weights, rows in runs of four use {runs streaming} less energy than random rows, and
  identical rows use {identical streaming} less.
- Absolute values save {absolute} of energy if the weights are streaming.
`
	layerNotes = `
- In prefill the card drew {layers watts} W in every row except zeros, so energy falls only as much as time. With an earlier
  default recipe, kinds of layers below the cap save {below} of energy. Kinds of layers at the cap save {at cap} of
  energy (next section).
- At the cap, energy × time shows more of the saving. With ` + "`round=4`" + ` in the stationary role, energy × time is {both} times the value
  with the original weights.
- In decode ` + "`round=4`" + ` saves {decode} of energy. With the original weights, the card draws {decode power} W at {decode clock} GHz and reads
  {rate} TB/s of weights.
- In prefill with stationary weights, reordering alone saves {reorder} of energy. This saving is within the error ([ordering.md](ordering.md)).
- [frontier.md](frontier.md) has the measurements of ` + "`trellis`" + `.
`
	recipeNotes = `
- [cost-accuracy.md](cost-accuracy.md) compares the built-in cost model with these totals.
- Decode in the streaming role (one block) and the kinds of layers were measured less precisely than the other rows.

## How were these measurements recorded?

`
	recordedNotes = `The runs on this page took place on 2026-11-21. [cards.md](cards.md) lists the card of every record of lowtoggle.
The cards of this page:

- %s: null-60s, pair-1, pytorch-1 and pytorch-2.
- %s: null-20s and the patterns.
- %s: all other files.

Earlier builds of the same day ran on the first and the second card. These builds wrote the half width of the null comparison's interval
as smallest_effect. The build on the first card could also end a window late, on a delayed counter step. The windows' lengths show that
no window ended late. These commands made the weights:

` + "```" + `
go build .
python3 bench/activations.py llama-17m acts.safetensors
for p in round=4 round=5 grid=16 grid=8 grid=4 sparsify=0.5 reorder; do
	./lowtoggle convert llama-17m ${p/=/-} --passes $p
done
./lowtoggle convert llama-17m near-lossless
` + "```" + `

Each recorded file contains the command of its measurement. To repeat the measurements, run the recorded commands after the commands
above. Replace the tensors of patterns.safetensors by the patterns in the table of operand roles, and the tensor random by
normal(0,0.02).
`
)

// nearCap is the least power of a reading at the cap.
const nearCap = 690

// measuredNotes puts figures in place of names.
func measuredNotes(t *testing.T, notes string) string {
	t.Helper()
	stationary, streaming, layers, decode := recordedRun(t, "patterns-stationary"), recordedRun(t, "patterns-streaming"), recordedRun(t, "layers-stationary"),
		recordedRun(t, "layers-decode-stationary")
	atCap := func(r *measure.Result) string {
		n := 0
		for _, v := range r.Variants {
			if v.Watts >= nearCap {
				n++
			}
		}
		return fmt.Sprint(n)
	}
	saving := func(file, variant string) string {
		c := comparisonOf(t, file, variant)
		return fmt.Sprintf("%s ± %.1f", saved(c, 1), 100*halfWidth(c))
	}
	zeros, round := comparisonOf(t, "patterns-stationary", "patterns.safetensors:zeros"), comparisonOf(t, "layers-stationary", "round-4")
	bytes := 0.0
	for _, p := range decode.Products {
		bytes += 2 * float64(p.Count*p.Problem.N*p.Problem.K)
	}
	runs := comparisonOf(t, "patterns-stationary", "patterns.safetensors:rows-in-runs-of-4")
	below, at := savingsOfKinds(t)
	return strings.NewReplacer(
		"{patterns}", fmt.Sprint(len(patternRows)), "{stationary capped}", atCap(stationary), "{streaming capped}", atCap(streaming),
		"{patterns watts}", wattsAtCap(stationary, streaming), "{layers watts}", wattsAtCap(layers, recordedRun(t, "layers-streaming")), "{zeros clock}", fmt.Sprintf("%.1f", *zeros.SMClock/1e3), "{zeros power}", fmt.Sprintf("%.0f", zeros.Watts),
		"{runs stationary}", reading{runs.RelativeEnergy, runs.Interval}.String(),
		"{runs streaming}", saved(comparisonOf(t, "patterns-streaming", "patterns.safetensors:rows-in-runs-of-4"), 0),
		"{identical stationary}", saved(comparisonOf(t, "patterns-stationary", "patterns.safetensors:rows-identical"), 1),
		"{identical streaming}", saved(comparisonOf(t, "patterns-streaming", "patterns.safetensors:rows-identical"), 0),
		"{absolute}", saving("patterns-streaming", "patterns.safetensors:absolute"), "{below}", below, "{at cap}", at,
		"{both}", fmt.Sprintf("%.3f", round.RelativeEnergy*round.RelativeTime), "{decode}", saving("layers-decode-stationary", "round-4"),
		"{decode power}", fmt.Sprintf("%.0f", decode.Baseline.Watts), "{decode clock}", fmt.Sprintf("%.2f", *decode.Baseline.SMClock/1e3),
		"{rate}", fmt.Sprintf("%.1f", bytes/decode.Baseline.Seconds/1e12), "{reorder}", saving("layers-stationary", "reorder"),
	).Replace(notes)
}

// wattsAtCap returns the range of power of all weights at the cap.
func wattsAtCap(runs ...*measure.Result) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range runs {
		for _, load := range r.Loads() {
			if load.Watts >= nearCap {
				low, high = min(low, load.Watts), max(high, load.Watts)
			}
		}
	}
	return fmt.Sprintf("%.0f to %.0f", low, high)
}

// savingsOfKinds returns the ranges of savings of the kinds of layers that draw less than the cap, and of the others.
func savingsOfKinds(t *testing.T) (below, at string) {
	t.Helper()
	var doc struct {
		Energy struct{ Measured struct{ Phases []phase } }
	}
	read(t, recorded+"verify.json", &doc)
	ranges := map[bool][2]float64{false: {math.Inf(1), math.Inf(-1)}, true: {math.Inf(1), math.Inf(-1)}}
	for _, r := range doc.Energy.Measured.Phases[0].Layers {
		capped := r.Run.Baseline.Watts >= nearCap
		was, saving := ranges[capped], 100*(1-r.Relative)
		ranges[capped] = [2]float64{min(was[0], saving), max(was[1], saving)}
	}
	text := func(r [2]float64) string { return fmt.Sprintf("%.1f to %.1f %%", r[0], r[1]) }
	return text(ranges[false]), text(ranges[true])
}
