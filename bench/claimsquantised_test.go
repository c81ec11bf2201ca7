package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

func quantisedValuesClaims(e *evidence) []claim {
	var recorded struct {
		Losses []struct {
			Apart float64 `json:"filled_relative_difference"`
		}
	}
	read(e.T, "results/quantised-loss.json", &recorded)
	apart := 0.0
	for _, l := range recorded.Losses {
		apart = max(apart, math.Abs(l.Apart))
	}
	return []claim{
		says("weights of {} models, one", fmt.Sprint(len(recorded.Losses))),
		says("losses of these models to within {} of", exponent(apart)),
	}
}

func quantisingClaims(e *evidence) []claim {
	perplexity := func(model string) string { return fmt.Sprintf("%.6f", e.evaluation(model).Perplexity) }
	list := []claim{
		says("`llama-17m` ({} in BF16) on {} evaluation tokens", perplexity("llama-17m"), thousands(float64(e.evaluation("llama-17m").Tokens))),
		says("from the largest magnitudes | {} | 0 |", e.recordedWithin("q/int4-nearest")),
		says("| no option: two mantissa bits | {} | {} |", e.recordedWithin("q/int4"), e.predicted(e.llama(), e.converted(e.llama(), "--format", "int4"), "prefill")),
	}
	for _, row := range []struct{ text, model string }{
		{"`int4` (groups of 128)", "q/int4"}, {"`int4`, `--passes \"\"`", "q/int4-nearest"}, {"`nvfp4`", "q/nvfp4"}, {"`fp8` (per channel)", "q/fp8"},
		{"`fp8`, `--passes \"\"`", "q/fp8-nearest"}, {"`fp8-block`", "q/fp8-block"},
	} {
		a := e.evaluation(row.model).Against
		list = append(list, says("| "+row.text+" | {} | {} | {} |", perplexity(row.model), percent(change(a.Ratio), 2),
			signed(100*math.Expm1(a.Interval[0]), 2)+" … "+percent(100*math.Expm1(a.Interval[1]), 2)))
	}
	return list
}

// recordedWithin returns the change of a recorded model's perplexity with its interval, as in "+1.41 % (+1.18 … +1.63)".
func (e *evidence) recordedWithin(name string) string {
	a := e.evaluation(name).Against
	return fmt.Sprintf("%s (%s … %s)", percent(change(a.Ratio), 2), signed(100*math.Expm1(a.Interval[0]), 2), signed(100*math.Expm1(a.Interval[1]), 2))
}

// exponent writes a small number as 4·10⁻⁸, rounded up.
func exponent(v float64) string {
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	n := int(math.Ceil(-math.Log10(v)))
	return fmt.Sprintf("%.0f·10⁻%c", math.Ceil(v*math.Pow10(n)), digits[n])
}

// nearest returns the folder of llama-17m in a format, with the nearest codes. It is empty without the model.
func (e *evidence) nearest(format string) string {
	e.Helper()
	model := e.llama()
	if model == "" {
		return ""
	}
	out := filepath.Join(e.temp, format)
	if _, err := os.Stat(out); err != nil {
		e.command("convert", model, out, "--format", format, "--passes", "", "--quiet")
	}
	return out
}

// againstReference returns the mean output SNRs of the source's and the result's codes against the unquantised model, and the change of
// energy that the same run of verify predicts.
func (e *evidence) againstReference(source, out, workload string) (before, after, predicted string) {
	e.Helper()
	if out == "" {
		return "", "", ""
	}
	var v struct {
		Tensors []struct {
			After  *float64 `json:"reference_snr_db"`
			Before *float64 `json:"source_reference_snr_db"`
		}
		verifiedEnergy
	}
	if err := json.Unmarshal([]byte(e.command("verify", source, out, "--reference", e.llama(), "--workload", workload, "--json")), &v); err != nil {
		e.Fatal(err)
	}
	n, sum, was := 0.0, 0.0, 0.0
	for _, t := range v.Tensors {
		if t.After != nil && t.Before != nil {
			n, sum, was = n+1, sum+*t.After, was+*t.Before
		}
	}
	return printed(1, was/n), printed(1, sum/n), percent(change(v.Energy.Predicted.Relative), 1)
}

func quantisedClaims(e *evidence) []claim {
	reference := func(source string, passes string) string {
		return e.converted(source, "--passes", passes, "--reference", e.llama())
	}
	int4 := e.nearest("int4")
	list := []claim{says("Its perplexity is {} % higher than that", printed(2, change(e.evaluation("q/int4-nearest").Against.Ratio)))}
	for _, passes := range []string{"scales=7", "scales=2", "scales=1", "scales=0"} {
		more := ""
		if passes == "scales=7" {
			more = " (any BF16 scale)"
		}
		out := reference(int4, passes)
		before, after, predicted := e.againstReference(int4, out, "prefill")
		text := "| `" + passes + " --reference`" + more + " | {} → {} dB | {} |"
		list = append(list, says(text, before, after, predicted))
	}
	below := e.source("transform/recipe.go", `\*source-(\d+)\)`)[0]
	lowest := fmt.Sprint(*e.recipe("balanced").MinSNR)
	list = append(list,
		says("keeps an output SNR of {} dB. FP8 scales", fmt.Sprint(*e.recipe("near-lossless").MinSNR)),
		says("warn of layers below {} dB, the lowest SNR", lowest), says("warn only of layers that are also {} dB below the nearest codes", below), says("less than {} dB with any codes", lowest),
		says("Dampings of `compensate` from {} to {} make", e.damping("defaultDamp"), e.damping("codesDamp")))
	channel, block := e.nearest("fp8"), e.nearest("fp8-block")
	for _, passes := range []string{"scales=5", "scales=3", "scales=2", "round=1"} {
		var figures, checkpoint []string
		for _, source := range []string{channel, block} {
			out := reference(source, passes)
			before, after, predicted := e.againstReference(source, out, "decode")
			checkpoint = append(checkpoint, before)
			if after != "" {
				after += " dB"
			}
			figures = append(figures, after, predicted)
		}
		if passes == "scales=5" {
			list = append(list, says("| the checkpoint | {} dB | 0 | {} dB | 0 |", checkpoint...))
		}
		list = append(list, says("| `"+passes+"` | {} | {} | {} | {} |", figures...))
	}
	return append(list, codesClaims(e)...)
}

// codesClaims are the claims about the page's evaluations and about the time and memory of conversions.
func codesClaims(e *evidence) []claim {
	codes := e.record("h200/recode.txt", `sync\s+(\S+) s: (\S+) times cp and sync`)
	size := e.record("h200/recode.txt", `20\.4 s, (\S+ \S+ \S+ \S+) bytes`)
	ratio := func(format string) string {
		return printed(1, e.number(e.record("recode-cpu.txt", `(?m)^`+format+` +\S+ s +\S+ s +(\S+) `)[0]))
	}
	list := []claim{
		says("made a mixture of experts of {} GB with", printed(1, e.number(size[0])/1e9)),
		says("took {} s, {} times as long as `cp -r` and `sync`. The conversion used {} MiB", codes[0], codes[1], e.record("h200/recode.txt", `(\d+) MiB; the largest`)[0]),
		says("| format | model of {} GB, earlier version | model of {} GB, current", e.record("recode-cpu.txt", `Each format's (\d) GB`)[0], e.record("recode-cpu.txt", `no other work; (\S+) GB`)[0]),
		says("| INT4, MXFP4 | {} | {} |", ratio("int4"), ratio("short int4")),
		says("| NVFP4 | {} | {} |\n| GPTQ", ratio("nvfp4"), ratio("short nvfp4")),
		says("| GPTQ | {} | {} |", ratio("gptq-order"), ratio("short gptq-order")),
		says("| block FP8 | {} | {} |", ratio("fp8-block"), ratio("short fp8-block")),
		says("| AWQ | {} | {} |\n| block", ratio("awq"), ratio("short awq")),
	}
	falls := func(name string) string { return printed(2, -change(e.evaluation(name).Against.Ratio)) + " %" }
	list = append(list, says("changes the perplexity of the INT4 checkpoint by {} with `scales=2` and by {} with `scales=0`", e.recordedWithin("r/int4-scales2-comp"), e.recordedWithin("r/int4-scales0-comp")),
		says("perplexity falls: by {} with `scales=2` and by {} with `scales=0`.", falls("r/int4-scales2-reference"), falls("r/int4-scales0-reference")))
	rises := func(model string) string { return percent(change(e.evaluation(model).Against.Ratio), 2)[1:] }
	list = append(list, says("The search raised perplexity by {} with `--max-loss 0.1%` and by {} with `--max-loss 0.5%`,", rises("r/fp8-within0.1"), rises("r/fp8-within0.5")))
	return append(list, says("perplexity rises by {} with `scales=3` and by {} with `scales=2`", rises("r/fp8-scales3"), rises("r/fp8-scales2")))
}
