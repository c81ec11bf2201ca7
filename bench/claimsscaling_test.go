package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/gemm/predict"
)

func scalingClaims(e *evidence) []claim {
	decoded := func(variant string) string { return e.measured("level-decode", variant, 2) }
	prefill := func(variant string) string { return e.measured("level-stationary", variant, 2) }
	model := e.llama()
	demo := filepath.Join(e.demo(), "model")
	inDecode := func(model string, args ...string) string {
		return e.predicted(model, e.converted(model, append(args, "--workload", "decode")...), "decode")
	}
	near, balanced := []string{"--passes", "grid,round", "--min-snr", fmt.Sprint(*e.recipe("near-lossless").MinSNR)}, []string{"--passes", "grid,round", "--min-snr", fmt.Sprint(*e.recipe("balanced").MinSNR)}
	list := []claim{
		says("In decode, yes: a common power of two adds {} to {} percentage points to", e.scaleAdds("grid4"), e.scaleAdds("grid2")),
		says("| no lossy pass | {} (a copy) | {} | {} |", decoded("copy"), decoded("scale"), decoded("exact")),
		says("| `grid=2` | {} | **{}** | **{}** |", decoded("grid2"), decoded("grid2-scale"), decoded("grid2-all")),
		says("| `grid=4` | {} | **{}** | – |", decoded("grid4"), decoded("grid4-scale")),
		says("| `trellis=0.1` | {} | {} | – |", decoded("trellis"), decoded("trellis-scale")),
		says("| `sparsify=0.5,round=5` | {} | {} | – |", decoded("sparse"), decoded("sparse-scale")),
		says("| no lossy pass | {} (a copy) | {} |\n| `grid=2`", prefill("copy"), prefill("scale")),
		says("| `grid=2` | {} | {} |\n| `grid=4`", prefill("grid2"), prefill("grid2-scale")),
		says("| `grid=4` | {} | {} |\n| `sparsify", prefill("grid4"), prefill("grid4-scale")),
		says("| `sparsify=0.5,round=5` | {} | {} |\n\nRandom inputs", prefill("sparse"), prefill("sparse-scale")),
		says("In decode, the predicted changes of energy are {} for `scale` alone, {} for `grid=2`, and {} for both", inDecode(model, "--passes", "scale"), inDecode(model, "--passes", "grid=2"),
			inDecode(model, "--passes", "scale,grid=2")),
		says("changes by {} with `grid=4` and by {} with `scale=uncached,grid=4`.", e.whole("decode", "grid=4"), e.whole("decode", "scale=uncached,grid=4")),
		says("(nearly all `round=4`) | {} | {} |", inDecode(model, near...), inDecode(model)),
		says("(`grid=4` in all layers) | {} | {}; with `scale` on all dimensions also {} |", inDecode(model, balanced...), inDecode(model, "--recipe", "balanced"),
			inDecode(model, "--passes", "scale,grid,round", "--min-snr", balanced[3])),
		says("| demo model, `near-lossless` | {} | {} |", inDecode(demo, near...), inDecode(demo)),
		says("| demo model, `balanced` | {} | {} |", inDecode(demo, balanced...), inDecode(demo, "--recipe", "balanced")),
		says("relative to σ = 0.02, where {} bits toggle", fmt.Sprintf("%.2f", exponentToggles(0.02))),
	}
	grid, scaled := e.converted(model, append(balanced, "--workload", "decode")...), e.converted(model, "--passes", "scale,grid,round", "--min-snr", balanced[3], "--workload", "decode")
	list = append(list, says("the cost model predicts {} points more saving, and {} points were measured",
		points(e.relative(model, grid, "decode")-e.relative(model, scaled, "decode")), e.scaleAdds("grid4")))
	tiny := filepath.Join(e.temp, "tiny")
	e.command("synth", "../weights/synth/configs/llama-tiny.json", tiny, "--quiet")
	without, with := e.converted(tiny, append(balanced, "--workload", "decode")...), e.converted(tiny, "--recipe", "balanced", "--workload", "decode")
	list = append(list, says("adds {} points to `balanced`", points(e.relative(tiny, without, "decode")-e.relative(tiny, with, "decode"))))
	text := map[string]string{"bits": "| bits that toggle |", "prefill": "| prefill, 8192³, stationary |", "decode": "| decode, 16×8192×8192 from memory |"}
	var bits []string
	energy, half := map[string][]string{}, map[string][]string{}
	for _, sigma := range []float64{0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56} {
		bits = append(bits, fmt.Sprintf("%.2f", exponentToggles(sigma)))
		text["bits"] += " {} |"
		for _, phase := range []string{"prefill", "decode"} {
			c := e.of("powers-"+phase, fmt.Sprintf("normal(0,%v)", sigma))
			text[phase] += " {} |"
			energy[phase], half[phase] = append(energy[phase], fmt.Sprintf("%.4f", c.RelativeEnergy)), append(half[phase], fmt.Sprintf("%.4f", halfWidth(c)))
		}
	}
	list = append(list, says(text["bits"], bits...))
	for _, phase := range []string{"prefill", "decode"} {
		cells := text[phase][len("| "):]
		list = append(list, says(text[phase]+"\n| … ± |"+cells[len(cells)-len(" {} |")*7:], append(energy[phase], half[phase]...)...))
	}
	most := func(phase string) string {
		c := e.of("powers-"+phase, "normal(0,0.64)")
		return saved(c, 1) + fmt.Sprintf(" ± %.1f", 100*halfWidth(c))
	}
	var predicted struct{ Predictions []predict.Prediction }
	out := e.command("predict", "--w", "normal(0,0.02)", "--against", "normal(0,0.64)", "--shape", "16x8192x8192", "--cold", "--json")
	if err := json.Unmarshal([]byte(out), &predicted); err != nil || len(predicted.Predictions) != 2 {
		e.Fatal(out, err)
	}
	return append(list, says("At σ = 0.64, {} of energy is saved in decode and {} in prefill. The cost model predicts a saving of {} in decode.", most("decode"), most("prefill"),
		printed(1, -change(*predicted.Predictions[1].Joules / *predicted.Predictions[0].Joules))+" %"))
}

// exponentToggles returns the expected number of exponent bits that differ between two BF16 values of normal(0,sigma).
func exponentToggles(sigma float64) (bits float64) {
	below := func(x float64) float64 { return math.Erf(x / sigma / math.Sqrt2) } // share of magnitudes below x
	set := [8]float64{}
	for exponent := range 255 {
		// Values round to nearest: half a unit in the last place below a power of two becomes that power.
		from, to := math.Ldexp(1-1.0/512, exponent-127), math.Ldexp(1-1.0/512, exponent-126)
		for bit := range set {
			if exponent>>bit&1 == 1 {
				set[bit] += below(to) - below(from)
			}
		}
	}
	for _, p := range set {
		bits += 2 * p * (1 - p)
	}
	return bits
}
