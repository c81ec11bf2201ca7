package bench

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

func readmeClaims(e *evidence) []claim {
	model := e.llama()
	near, balanced := e.converted(model), e.converted(model, "--recipe", "balanced")
	uncached, balancedUncached := e.converted(model, "--workload", "decode"), e.converted(model, "--recipe", "balanced", "--workload", "decode")
	const prefillSearch, decodeSearch = "trellis-c-0.1", "decode-full-0.1"
	e.sameBytes(balanced, e.converted(model, "--passes", "grid=4"))
	return []claim{
		says("| prefill, 4096 tokens | {} | – |", e.whole("recipes-prefill", "--recipe balanced")),
		says("| decode, batch 16 | {} | – |", e.whole("recipes-decode", balancedDecode)),
		says("The default recipe saves {} of model A's energy per token in prefill and, with `--workload decode`, {} in decode.", e.wholeSaved("recipes-prefill", "--recipe near-lossless"), e.wholeSaved("recipes-decode", "--recipe near-lossless --workload decode")),
		says("| both phases, 32 requests | {} | – |", e.served()),
		says("| prefill | {} | {} |", e.spent(prefillSearch), e.rise(prefillSearch, 2)),
		says("| decode | {} | {} |", e.spent(decodeSearch), e.rise(decodeSearch, 2)),
		says("draw about {} of its power.", printed(0, 100*serverShare(cardWatts))+" %"),
		says("saves nothing: {} of the cards' energy is {} of the server's. At the", percent(e.wholeChange("recipes-decode", balancedDecode), 1), percent(e.serverChange("recipes-decode", balancedDecode), 1)),
		says("time: {} of the cards' energy is {} of the server's (", percent(e.wholeChange("recipes-prefill", "--recipe balanced"), 1), percent(e.serverChange("recipes-prefill", "--recipe balanced"), 1)),
		says("differ by ± {} of its value in prefill, by ± {} in decode", e.cardsDiffer("prefill"), e.cardsDiffer("decode")),
		says("nothing measurable in prefill, {} in decode", saved(e.of("level-decode", "exact"), 1)),
		says("model A saves {} at batch 16, {} at batch 64", e.savedAtBatch(16), e.savedAtBatch(64)),
		says("still use {} of the original energy", remaining(e.of("structure-stationary", "onemag"))),
		shows("$ lowtoggle demo --keep d  # keeps the model in d/model\n", e.command("demo")),
		says("output SNR of at least {} dB\n", fmt.Sprint(*e.recipe("near-lossless").MinSNR)),
		says("the recipes' limits are {} and {} dB.", fmt.Sprint(*e.recipe("near-lossless").MinSNR), fmt.Sprint(*e.recipe("balanced").MinSNR)),
		says("Needs only Go {}:", e.goVersion()),
		says("`--recipe exact` | {} | not measurable | {}, with", strings.TrimSuffix(e.lost("exact", 0)[1:], " %"), e.measured("level-decode", "exact", 1)),
		says("`--recipe near-lossless`) | {} | {}, predicted | {}, predicted † |", percent(change(e.evaluation("near-lossless").Against.Ratio), 2),
			e.predicted(model, near, "prefill"), e.predicted(model, near, "decode")),
		says("`--recipe balanced` | {} | {} | {} † |", e.lost("grid-4", 2), e.measured("layers-stationary", "grid-4", 1),
			e.measured("layers-decode-stationary", "grid-4", 1)),
		says("--max-loss 0.1%` | {} | {} | – |", e.rise(prefillSearch, 2), e.spent(prefillSearch)),
		says("compensate` | {} | – | {} |", e.rise(decodeSearch, 2), e.spent(decodeSearch)),
		says("perplexity {} by default, {} with `balanced`; predicted energy in\ndecode {} and {}. A prediction", e.evaluated("near-decode", 2), e.evaluated("balanced-decode", 2),
			e.predicted(model, uncached, "decode"), e.predicted(model, balancedUncached, "decode")),
		says("- **{} architectures**", fmt.Sprint(len(arch.Families()))),
	}
}

// goVersion returns the version that go.mod asks for.
func (e *evidence) goVersion() string {
	e.Helper()
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		e.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(text))[1]
}

// wholeSaved returns the saving of a whole model's energy per token.
func (e *evidence) wholeSaved(record, passes string) string {
	e.Helper()
	return printed(1, -e.wholeChange(record, passes)) + " %"
}

// savedAtBatch returns the saving of decode on the page of whole models.
func (e *evidence) savedAtBatch(batch int) string {
	e.Helper()
	return e.source("docs/whole-model.md", fmt.Sprintf(`(?s)## Other batch sizes.*?decode, batch %d, context 1024 \| .scale=uncached,grid=4. \| [^|]* \| −([\d.]+ %%) `, batch))[0]
}

// cardsDiffer returns the share of a saving by which two cards may differ.
func (e *evidence) cardsDiffer(phase string) string {
	e.Helper()
	share, _ := shareBetween(plansIn(olderCardProducts(e.T), phase), savedShare)
	return printed(0, 100*twoCards*share) + " %"
}
