package bench

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/collective"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// betweenCards has the records of collectives between two H100s.
const betweenCards = "results/h100/"

const collectiveIntroduction = `# What does a conversion save where cards exchange data?

Generated from [bench/results](../bench/results) by ` + "`go test ./bench -run CollectivePage -update`" + `.

Large models are divided among the cards of a host (tensor parallelism). After a layer, the cards exchange activations: an
all-reduce adds the cards' partial sums, and an all-gather gives every card the other cards' columns. A conversion changes the weights and
not the exchanged activations. So the relative saving is smaller with the exchange than without it.

The first tables compare GEMMs with different BF16 weights on two cards, H100s. Savings were not measured on two H200s. [patterns.md](patterns.md)
explains the names of the weights.

- **Without exchange**: both cards multiply. The cards wait for each other after 25 ms or 256 GEMMs, whichever is sooner.
- **With exchange**: a GEMM and an exchange begin together on two streams. The next GEMM begins when both have ended. The exchanged
  data have the size of the GEMM's output.

Energy is the sum of both cards, for one GEMM on each card and, with exchange, one exchange. The first row of a table
gives energy and time. The other rows give changes relative to the first row, with ` + "`±`" + ` half of the 95 %
interval. The row “(copy)” has a copy of the first row's weights. A comparison is *invalid* if the copy's energy
differs from the first row's by more than the 95 % interval.
`

// TestCollectivePage checks docs/collectives.md against the records.
func TestCollectivePage(t *testing.T) {
	files, err := filepath.Glob(betweenCards + "collective-*.json")
	testmodel.OK(t, err)
	var b strings.Builder
	b.WriteString(collectiveIntroduction)
	for _, phase := range []struct{ name, title string }{{"decode", "Decode, 16 rows of activations"}, {"prefill", "Prefill, 8192 rows of activations"}} {
		fmt.Fprintf(&b, "\n## %s\n", phase.title)
		for _, file := range files {
			if !strings.Contains(file, "-"+phase.name) {
				continue
			}
			var r collective.Result
			read(t, file, &r)
			b.WriteString(collectiveTable(filepath.Base(file), &r))
		}
	}
	b.WriteString(overTimeIntroduction)
	for _, op := range []string{"allgather", "allreduce"} {
		for _, phase := range []string{"decode", "prefill"} {
			if file := "overtime-" + op + "-" + phase + ".json.gz"; exists(recorded + file) {
				b.WriteString(overTimeTable(file, readPacked[collective.OverTime](t, recorded+file)))
			}
		}
	}
	goldenfile.Same(t, "../docs/collectives.md", []byte(b.String()))
}

const overTimeIntroduction = `
## Power of each card

` + "`lowtoggle profile --collective`" + ` measures the power over time of each card, with random weights, in three cases: the GEMM alone, the exchange
alone, and both at once. *Power* is the mean over the second half of the work. It may exceed the card's power limit, because the card's
controller reacts late ([power-h200.md](power-h200.md)). *Idle* is the power before the work. *Multipliers*, *on chip* and
*memory* are predicted by the [component model](components.md); for an exchange they are lower bounds. *Rest* is the
measured power minus idle and predicted power: links between the cards, awake multiprocessors and the model's error. *Golden runs* are
the runs in the main bin of execution times. The second number of *power* is half of the 95 % interval. Power is *steady* if it changed
by less than the tolerance for a quarter of the run; the list below a table says why the other rows are not steady. The committed records
have no single readings.
`

// overTimeTable returns Markdown with the power of every card in a record of power over time.
func overTimeTable(file string, r *collective.OverTime) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe record [%s](../bench/%s%s) has an all-%s of %s between %d × %s with NCCL %s, from this command:\n\n```\n%s\n```\n\n", file, recorded, file,
		strings.TrimPrefix(string(r.Operation), "all"), exchanged(r.Bytes), len(r.Cards), r.Cards[0].GPU, r.Library, r.Cards[0].Command)
	b.WriteString("| work | card | time | power | idle | multipliers | on chip | memory | rest | golden runs | steady |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	works := len(r.Parts) / len(r.Cards)
	notes := ""
	for i, p := range r.Parts {
		of, steady := r.Cards[i/works].Profiles[i%works], "yes"
		if !of.Steady.SSP.Found {
			steady = "no"
			notes += fmt.Sprintf("- card %d, %s: %s\n", p.Card, p.Work, of.Steady.SSP.Why)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %.0f W ± %.1f | %.0f W | %s | %s | %s | %.0f W | %d of %d | %s |\n", p.Work, p.Card, shortTime(p.Seconds),
			p.Watts, (p.High-p.Low)/2, p.Idle, wattsCell(p.Multipliers), wattsCell(p.OnChip), wattsCell(p.HBM), p.Rest, of.Golden, of.Taken, steady)
	}
	for i, c := range r.Cards {
		for _, text := range c.Warnings {
			notes += fmt.Sprintf("- card %d, warning: %s\n", i, text)
		}
	}
	if notes != "" {
		b.WriteString("\n" + notes)
	}
	return b.String()
}

// wattsCell returns a predicted power as a cell of a table.
func wattsCell(watts *float64) string {
	if watts == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f W", *watts)
}

// collectiveTable returns Markdown with a record's energies without and with the collective.
func collectiveTable(file string, r *collective.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe record [%s](../bench/%s%s) has an all-%s of %s between %d × %s with NCCL %s, from this command:\n\n```\n%s\n```\n\n", file, betweenCards, file,
		strings.TrimPrefix(string(r.Operation), "all"), exchanged(r.Bytes), len(r.Cards), r.Cards[0].Name, r.Library, r.Products.Command)
	b.WriteString("| weights | energy, without exchange | energy, with exchange | time, with exchange |\n|---|---|---|---|\n")
	fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", patternCell(r.Products.Baseline.Name), joulesCell(r.Products), joulesCell(r.Both), shortTime(r.Both.Baseline.Seconds))
	with := append([]power.Comparison{r.Both.Null}, r.Both.Variants...)
	for i, c := range append([]power.Comparison{r.Products.Null}, r.Products.Variants...) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", patternCell(c.Name), energyCell(c), energyCell(with[i]), timeCell(with[i]))
	}
	return b.String()
}

// joulesCell returns the baseline's energy in mJ as a cell of a table, with a note if the comparison is invalid.
func joulesCell(r *power.Result) string {
	text := fmt.Sprintf("%.4g mJ", 1e3*r.Baseline.Joules)
	if !r.Valid {
		text += ", invalid"
	}
	return text
}

// exchanged returns a number of bytes in KiB or MiB.
func exchanged(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// patternCell returns a pattern as a cell of a table.
func patternCell(name string) string { return "`" + strings.ReplaceAll(name, "|", "\\|") + "`" }
