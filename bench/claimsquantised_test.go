package bench

import (
	"fmt"
	"math"
)

func quantisedValuesClaims(e *evidence) []claim {
	perplexity := func(model string) string { return fmt.Sprintf("%.6f", e.evaluation(model).Perplexity) }
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
	list := []claim{
		says("weights of {} models, one", fmt.Sprint(len(recorded.Losses))),
		says("losses to within {} of", exponent(apart)),
		says("`llama-17m` ({} in BF16) on {} evaluation tokens", perplexity("llama-17m"), thousands(float64(e.evaluation("llama-17m").Tokens))),
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

// exponent writes a small number as 4·10⁻⁸, rounded up.
func exponent(v float64) string {
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	n := int(math.Ceil(-math.Log10(v)))
	return fmt.Sprintf("%.0f·10⁻%c", math.Ceil(v*math.Pow10(n)), digits[n])
}
