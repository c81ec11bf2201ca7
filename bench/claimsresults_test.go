package bench

import (
	"fmt"
	"math"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// setting is a row of docs/results.md.
type setting struct {
	text             string   // as on the page
	args             []string // of convert
	loss             string   // name in llama-17m-loss.json
	prefill, decoded string   // variants that were measured; "": none
	layers           string   // record of the measurements
	more             string   // text behind both measurements
}

var settings = []setting{
	{"`--passes round=3`", []string{"--passes", "round=3"}, "round-3", "", "", "", ""},
	{"`--passes round=4`", []string{"--passes", "round=4"}, "round-4", "round-4", "round-4", "layers", ""},
	{"`--passes round=5`", []string{"--passes", "round=5"}, "round-5", "round-5", "", "layers", ""},
	{"`--passes round=6`", []string{"--passes", "round=6"}, "round-6", "", "", "", ""},
	{"`--passes grid=16`", []string{"--passes", "grid=16"}, "grid-16", "grid-16", "", "layers", ""},
	{"`--recipe near-lossless`, the default", nil, "", "", "", "", ""},
	{"`--passes grid=8`", []string{"--passes", "grid=8"}, "grid-8", "grid-8", "", "layers", ""},
	{"`--passes grid=4`; `--recipe balanced` gives the same bytes", []string{"--passes", "grid=4"}, "grid-4", "grid-4", "grid-4", "layers", ""},
	{"`--passes grid=2`", []string{"--passes", "grid=2"}, "grid-2", "grid2", "grid2", "level", ", random inputs"},
	{"`--passes sparsify=0.1`", []string{"--passes", "sparsify=0.1"}, "sparsify-0.1", "", "", "", ""},
	{"`--passes sparsify=2:4`", []string{"--passes", "sparsify=2:4"}, "sparsify-2-4", "", "", "", ""},
}

// row returns the claim about a setting's row.
func (s setting) row(e *evidence, model string) claim {
	e.Helper()
	out := e.converted(model, s.args...)
	text, figures := "| "+s.text+" | {} | {} ({}) | {} |", []string{e.lowestSNR(model, out)}
	if s.loss == "" {
		figures = append(figures, e.evaluatedWithin("near-lossless")...)
	} else {
		figures = append(figures, e.lostWithin(s.loss)...)
	}
	for _, phase := range []struct{ workload, variant, record string }{
		{"prefill", s.prefill, s.layers + "-stationary"}, {"decode", s.decoded, s.layers + map[string]string{"layers": "-decode-stationary", "level": "-decode"}[s.layers]},
	} {
		if phase.workload == "decode" {
			text += " {} |"
		}
		figures = append(figures, e.predicted(model, out, phase.workload))
		if phase.variant == "" {
			text += " – |"
			continue
		}
		text += " {}" + s.more + " |"
		figures = append(figures, e.measured(phase.record, phase.variant, 1))
	}
	return says(text, figures...)
}

// lostWithin returns the rise of perplexity by bench/loss.py and its interval.
func (e *evidence) lostWithin(model string) []string {
	e.Helper()
	var all lossReport
	read(e.T, "results/llama-17m-loss.json", &all)
	of, ok := all.Converted[model]
	if !ok {
		e.Fatalf("no loss of %s", model)
	}
	return riseWithin(of.Rise, of.Interval[0], of.Interval[1])
}

// evaluatedWithin returns the change of perplexity by lowtoggle eval and its interval.
func (e *evidence) evaluatedWithin(model string) []string {
	e.Helper()
	a := e.evaluation(model).Against
	return riseWithin(change(a.Ratio), a.Interval[0], a.Interval[1])
}

// riseWithin writes a rise in per cent with an interval that is given in nats.
func riseWithin(rise, low, high float64) []string {
	return []string{percent(rise, 3), fmt.Sprintf("%s to %s", signed(100*math.Expm1(low), 3), signed(100*math.Expm1(high), 3))}
}

func resultsClaims(e *evidence) []claim {
	model := e.llama()
	var list []claim
	for _, s := range settings {
		list = append(list, s.row(e, model))
	}
	list = append(list, timeClaims(e)...)
	exact, decodeExact := e.converted(model, "--recipe", "exact"), e.converted(model, "--recipe", "exact", "--workload", "decode")
	uncached, balanced := e.converted(model, "--workload", "decode"), e.converted(model, "--recipe", "balanced", "--workload", "decode")
	return append(list,
		says("| `--recipe exact` | – | {} | {} | {}, random inputs; a copy of the source shows the same change | {} | {}, random inputs, with", e.lost("exact", 3), e.predicted(model, exact, "prefill"),
			e.measured("order-stationary-2", "exact", 1), e.predicted(model, decodeExact, "decode"), e.measured("level-decode", "exact", 1)),
		says("on {} evaluation tokens, with a", thousands(float64(e.frontier.Tokens))),
		says("That version changed measured energy by {} in prefill and {} in decode, and perplexity by {} (", e.measured("layers-stationary", "near-lossless", 1),
			e.measured("layers-decode-stationary", "near-lossless", 1), e.lost("near-lossless", 3)),
		says("falls by {} with `round=4`", both(e.of("layers-stationary", "round-4"))),
		says("All-zero weights save most: {} of energy in prefill, {} in decode.", percent(change(e.of("layers-stationary", "zeros").RelativeEnergy), 0),
			percent(change(e.of("layers-decode-stationary", "zeros").RelativeEnergy), 0)),
		says("In decode this scaling adds {} to {} percentage points to the saving of a coarse grid. With random inputs, energy changes by {} with `scale,grid=4`, and by {} with `grid=4` ([", e.scaleAdds("grid4"), e.scaleAdds("grid2"),
			e.measured("level-decode", "grid4-scale", 1), e.measured("level-decode", "grid4", 1)),
		says("`scale=uncached`: {} and {} of energy in decode", e.predicted(model, uncached, "decode"), e.predicted(model, balanced, "decode")),
	)
}

// timeClaims are the claims of the table of time and memory.
func timeClaims(e *evidence) []claim {
	convert := e.record("cpu-2026-11-21.txt", `BenchmarkConvert-2\s+3\s+(\d+) ns/op\s+\S+ MB/s\s+(\S+) allowed-MB\s+(\S+) convert/cp\s+\S+ cp-s/op\s+(\S+) peak-MB`)
	inspect := e.record("cpu-2026-11-21.txt", `activity-2\s+3\s+\d+ ns/op\s+(\S+) MB/s`)
	plain := e.record("cpu-2026-11-21.txt", `copy-2\s+3\s+\d+ ns/op\s+(\S+) MB/s`)
	reorder := e.record("cpu-2026-11-21.txt", `Reorder-2\s+3\s+(\d+) ns/op`)
	codes := e.record("h200/recode.txt", `sync\s+(\S+) s: (\S+) times cp and sync`)
	memory := e.record("h200/recode.txt", `(\d+) MiB; the largest tensor has (\d+) MB`)
	size := e.record("h200/recode.txt", `20\.4 s, (\S+ \S+ \S+ \S+) bytes`)
	recoded := func(format string) float64 {
		return e.number(e.record("recode-cpu.txt", `(?m)^short `+format+` +\S+ s +\S+ s +(\S+) `)[0])
	}
	loss := e.record("h200/runner/losses.txt", `models/llama-17m exact true.* CPU (\S+)s`)
	number := func(text string, over float64, decimals int) string { return printed(decimals, e.number(text)/over) }
	return []claim{
		says("and `sync` | at most 1.5 | {} ({} s) |", number(convert[2], 1, 2), number(convert[0], 1e9, 1)),
		says("{} MB: three times the largest tensor, plus 100 MB | {} MB |", number(convert[1], 1, 0), number(convert[3], 1, 0)),
		says("`convert --passes scales,round=1` of {} GB block FP8 on 16 cores, relative to `cp -r` and `sync` | at most 2 | {} ({} s) |",
			number(size[0], 1e9, 1), codes[1], codes[0]),
		says("{} GB: three times the largest tensor, plus 100 MB | {} MB |", printed(1, (3*e.number(memory[1])+100)/1000), printed(0, e.number(memory[0])*1.048576)),
		says("reading {} GB of quantised weights", e.record("recode-cpu.txt", `no other work; (\S+) GB`)[0]),
		says("| {} (INT4) to {} (NVFP4) |", printed(1, recoded("int4")), printed(1, recoded("nvfp4"))),
		says("at least 0.5 | {} ({} GB/s against {}) |", printed(2, e.number(inspect[0])/e.number(plain[0])), number(inspect[0], 1e3, 1), number(plain[0], 1e3, 1)),
		says("| under 60 s | {} s |", number(reorder[0], 1e9, 1)),
		says("| {} s on 4 of 32 cores", printed(0, e.point("trellis-c-0.1").Seconds)),
		says("(`losses.txt`) | – | {} s |", number(loss[0], 1, 1)),
		says("| {} nats; the inverse", strings.TrimPrefix(e.lostNats("exact"), "-")),
		says("with {} linear layers in", fmt.Sprint(e.linearLayers())),
	}
}

// lostNats returns the change of the loss by bench/loss.py.
func (e *evidence) lostNats(model string) string {
	e.Helper()
	var all struct {
		Converted map[string]struct {
			Rises float64 `json:"loss_rises_by"`
		}
	}
	read(e.T, "results/llama-17m-loss.json", &all)
	return strings.Replace(fmt.Sprintf("%.1e", all.Converted[model].Rises), "e-0", "e-", 1)
}

// linearLayers returns the number of linear layers of llama-17m, by the record of their measurement.
func (e *evidence) linearLayers() (n int) {
	e.Helper()
	for _, p := range recordedRun(e.T, "layers-stationary").Products {
		n += p.Count
	}
	return n
}

// both returns the saving of energy × time.
func both(c power.Comparison) string {
	return printed(1, -change(c.RelativeEnergy*c.RelativeTime)) + " %"
}

// scaleAdds returns the points that powers of two add to a grid's saving in decode.
func (e *evidence) scaleAdds(grid string) string {
	e.Helper()
	return printed(1, 100*(e.of("level-decode", grid).RelativeEnergy-e.of("level-decode", grid+"-scale").RelativeEnergy))
}

// thousands returns a whole number with spaces between groups of three digits.
func thousands(v float64) string {
	text := printed(0, v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}
