package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// servedRecord is a run of bench/serve/run.sh.
type servedRecord struct {
	Passes       string // of the converted model
	Transformers string
	Torch        string
	Run          serve.Result
}

// TestServingPage checks that the table of docs/serving.md agrees with the record.
func TestServingPage(t *testing.T) {
	data, err := os.ReadFile("results/h200/serve.json")
	if err != nil {
		t.Fatal(err)
	}
	var r servedRecord
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if null := r.Run.Null.Interval; len(r.Run.Blocks) != 2 || null[0] > 1 || null[1] < 1 {
		t.Errorf("%d blocks and a null's interval of %v: the text below the tables says two blocks, and that the interval contains zero", len(r.Run.Blocks), null)
	}
	goldenfile.SameBetween(t, "../docs/serving.md", "<!-- servers: go test ./bench -run ServingPage -update -->\n", "<!-- end of servers -->\n", r.section())
}

func (r servedRecord) section() string {
	run, w := r.Run, r.Run.Workload
	var b strings.Builder
	fmt.Fprintf(&b, `Three servers of [bench/serve](../bench/serve) ran on one %s (%s) at the same time. The servers had the original model, a copy of
the original, and the model converted by `+"`%s`"+`. The model (bench/serve/config.json) has four layers with the shapes of a
70 B Llama, with 3.95 B random weights in BF16. %d requests were in flight, with prompts of %d and answers of %d tokens. The
run of %s took %.0f s. Each server had %d windows of at least %.0f s ([serve.json](../bench/results/h200/serve.json);
transformers %s, PyTorch %s).

| server | energy per output token (95 %% interval) | energy per total token (95 %% interval) | time per output token (95 %% interval) | J per output token | mJ per total token |
|---|---|---|---|---|---|
`, run.GPU, run.Cards[0].ID(), r.Passes, w.Concurrency, w.PromptTokens, w.OutputTokens, run.Date[:10], run.Seconds, run.Baseline.Windows, run.WindowTime, r.Transformers, r.Torch)
	names := map[string]string{run.Baseline.Name: "original", run.Null.Name: "copy (null)", run.Variants[0].Name: "converted"}
	list := append([]serve.Comparison{{Summary: run.Baseline}, *run.Null}, run.Variants...)
	for _, c := range list {
		energy, total, time := "–", "–", "–"
		if c.Passes > 0 {
			energy = percent(change(c.RelativeEnergy), 1) + " (" + spanOf(c.Interval) + ")"
			total = percent(change(c.RelativeTotal), 1) + " (" + spanOf(c.TotalInterval) + ")"
			time = percent(change(c.RelativeTime), 1) + " (" + spanOf(c.TimeInterval) + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.4f | %.2f |\n", names[c.Name], energy, total, time, c.Joules, 1e3*c.JoulesPerTotal)
	}
	b.WriteString("\n| server | power | tokens per second | TTFT p50, p99 in ms | ITL p50, p99 in ms |\n|---|---|---|---|---|\n")
	for _, c := range list {
		capped := ""
		if c.Capped != nil && *c.Capped {
			capped = ", capped"
		}
		fmt.Fprintf(&b, "| %s | %.0f W%s | %.0f | %s, %s | %s, %s |\n", names[c.Name], c.Watts, capped, c.Speed,
			milliseconds(c.FirstToken.P50), milliseconds(c.FirstToken.P99), milliseconds(c.InterToken.P50), milliseconds(c.InterToken.P99))
	}
	fmt.Fprintf(&b, `
Changes are relative to the original. The intervals are wide, because there were only two blocks, and the energy counter makes only some
dozens of steps in a window. The copy's intervals contain zero. With idle servers the card draws %.0f W.

*Capped* means that the power limit lowered the card's clock in at least half of the samples. The mean power is below the limit
of %.0f W, because the servers alternate between prefill at the limit and decode below the limit. In decode, Python limits the speed of
these servers. A server with CUDA graphs keeps the card busier.
`, run.IdleWatts, *run.Cards[0].PowerLimit)
	return b.String()
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.1f", 1e3*seconds) }
