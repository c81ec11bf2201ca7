package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
)

// named runs a command and puts a page's names in place of folders.
func (e *evidence) named(names map[string]string, args ...string) string {
	e.Helper()
	out := e.command(args...)
	for folder, name := range names {
		out = strings.ReplaceAll(out, folder, name)
	}
	return out
}

func accuracyClaims(e *evidence) []claim {
	demo := filepath.Join(e.demo(), "model")
	near, half := e.converted(demo), filepath.Join(e.temp, "half")
	names := map[string]string{demo: "d/model", near: "out", half: "half"}
	eval, search := "", ""
	if e.llama() != "" { // not short
		eval = e.named(names, "eval", demo, near)
		search = e.named(names, "convert", demo, half, "--tokens", filepath.Join(demo, "tokens.safetensors"), "--max-loss", "0.5%")
	}
	percents := func(share *float64) string { return fmt.Sprintf("%v %%", 100**share) }
	gpu := e.record("h200/runner/losses.txt", `models/llama-17m exact true: .* off by -(\d)\S*e-0(\d); loaded in \S+, (\S+)ms in all, CPU (\S+)s`)
	loaded := e.record("h200/runner/commands.txt", `eval --device 0, 32 blocks, .*, with loading\s+(\S+) s`)
	small := e.record("scale-cpu.txt", `(?m)^eval llama-17m (\S+) s of processor time`)
	list := []claim{
		shows("$ lowtoggle eval d/model out | head -4\n", eval),
		shows("$ lowtoggle convert d/model half --tokens d/model/tokens.safetensors --max-loss 0.5%\n", search),
		says("on one H200 differs by {} nats per token from the loss on the CPU. The H200 takes {} s, 16 CPU cores take {} s (", gpu[0]+"e-"+gpu[1], printed(1, e.number(gpu[2])/1e3), printed(0, e.number(gpu[3]))),
		says("takes {} s on an H200, loading included", printed(0, e.number(loaded[0]))),
		says("each model takes {} s of processor time on an AMD EPYC. This is about {} s on two free cores", small[0], printed(0, e.number(small[0])/2)),
		says("at least 2²² ({} million) weights", printed(1, e.shifted("transform/device.go", "const sampleFrom")/1e6)),
		says("Defaults: {} dB in the recipe `near-lossless`, {} dB in `balanced`", fmt.Sprint(*e.recipe("near-lossless").MinSNR), fmt.Sprint(*e.recipe("balanced").MinSNR)),
		says("The default is {}, or {} with `--recipe balanced`", percents(e.recipe("near-lossless").MaxLoss), percents(e.recipe("balanced").MaxLoss)),
	}
	for _, row := range []struct{ text, begin, decimals string }{{"16 cores", "cpu", "0"}, {"one H200 (`--device 0`)", "0", "1"}} {
		m := e.record("h200/runner/search.txt", `(?m)^`+row.begin+`: (\S+) s, 16 cores; predicted \{Relative:(\S+) .*; perplexity (\S+) % \((\S+) (\S+)\); trials`)
		signed3 := func(i int) string { return signed(e.number(m[i]), 3) }
		list = append(list, says("| "+row.text+" | {} s | {} | {} % ({} to {}) |", printed(int(row.decimals[0]-'0'), e.number(m[0])), percent(change(e.number(m[1])), 2),
			signed3(2), signed3(3), signed3(4)))
	}
	list = append(list, searchClaims(e)...)
	for _, row := range []struct{ budget, search, coarse string }{
		{"0.1 % |", "trellis-c-0.1", "grid-0.1"}, {"0.5 % |", "trellis-c-0.5", "grid-0.5"}, {"1.2 % |", "trellis-c-1.2", "grid-1.2"},
		{"0.1 %, `--workload decode`, with `prune` |", "decode-full-0.1", "decode-round-0.1"},
	} {
		p := e.point(row.search)
		list = append(list, says("\n| "+row.budget+" {} ({} to {}) | "+p.Workload+" {} | {} at {} |", percent(p.rise, 3), signed(p.low, 3), signed(p.high, 3),
			e.spent(row.search), e.spent(row.coarse), e.rise(row.coarse, 3)))
	}
	for _, row := range []struct {
		model, text string
		options     []string
	}{{"near-decode", "default, `--recipe near-lossless`", nil}, {"balanced-decode", "`--recipe balanced`", []string{"--recipe", "balanced"}}} {
		interval := e.evaluation(row.model).Against.Interval // in nats
		list = append(list, says("| "+row.text+" | {} ({} to {}) | {} |", e.evaluated(row.model, 2), signed(100*math.Expm1(interval[0]), 2), signed(100*math.Expm1(interval[1]), 2),
			e.predicted(e.llama(), e.converted(e.llama(), append(row.options, "--workload", "decode")...), "decode")))
	}
	least := e.of("structure-stationary", "onemag")
	return append(list,
		says("All {} linear layers", fmt.Sprint(e.linearLayers())),
		says("(a single magnitude) save only {} ± {} of the energy", saved(least, 1), fmt.Sprintf("%.1f", 100*halfWidth(least))),
		says("keeps at least {} dB in every layer of `llama-17m`, and raises perplexity by about {} %. `balanced` keeps at least {} dB in this model (the recipe's limit is {} dB), and raises perplexity by {} %.", fmt.Sprint(*e.recipe("near-lossless").MinSNR),
			printed(2, change(e.evaluation("near-lossless").Against.Ratio)), e.lowestWhole(), fmt.Sprint(*e.recipe("balanced").MinSNR), strings.Trim(e.lost("grid-4", 2), "+ %")),
	)
}

// lowestWhole returns the lowest SNR of balanced in whole decibels.
func (e *evidence) lowestWhole() string {
	model := e.llama()
	text := strings.TrimSuffix(e.lowestSNR(model, e.converted(model, "--recipe", "balanced")), " dB")
	if text == "" {
		return ""
	}
	return printed(0, e.number(text))
}

// searchClaims are the claims about the search in a model of 8 B shapes.
func searchClaims(e *evidence) []claim {
	const file = "h200/runner/search-8b.txt"
	stage := func(name string) float64 {
		return e.number(e.record(file, `(?m)^`+name+` +from +\S+ s, +(\S+) s`)[0])
	}
	total := e.number(e.record(file, `total (\S+) s from start`)[0])
	memory := e.record(file, `process: (\S+) GiB, of which \S+ GiB its own and (\S+) GiB mapped`)
	whole := func(v float64) string { return printed(0, v) }
	return []claim{
		says("took {} min {} s from start to exit", whole(math.Floor(total/60)), whole(math.Mod(total, 60))),
		says("| calibration statistics | {} s |", whole(stage("statistics"))),
		says("curves | {} s |", whole(stage("curves"))),
		says("| sensitivities | {} s |", whole(stage("sensitivities"))),
		says("whole model | {} s |", whole(stage("trial"))),
		says("writing | {} s |", whole(stage("predict")+stage("write"))),
		says("source and result | {} s |", whole(stage("evaluate"))),
		says("at most {} GiB of host memory, of which {} GiB were mapped", whole(e.number(memory[0])), whole(e.number(memory[1]))),
		says("The statistics took {} GB", e.record(file, `disk that took (\d+) GB`)[0]),
	}
}
