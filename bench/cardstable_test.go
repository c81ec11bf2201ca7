package bench

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/stats"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// inventedCard returns a record of a card, with one plan whose energies are given.
func inventedCard(uuid string, steady, below, decode float64) cardRecord {
	run := func(ratio float64, rest ...*measure.Result) *measure.Result {
		half := 0.002 * stats.Student(1, 0.95)
		of := func(name string, ratio float64) power.Comparison {
			return power.Comparison{Summary: power.Summary{Name: name}, RelativeEnergy: ratio, Interval: []float64{ratio - half, ratio + half}, Blocks: 1}
		}
		r := &power.Result{Card: power.Info{Name: "NVIDIA H200", UUID: uuid}, Baseline: power.Summary{Watts: 700},
			Null: of("copy", 1.002), Variants: []power.Comparison{of("grid=4", ratio)}, Blocks: []power.Block{{Complete: true}}}
		return &measure.Result{Result: r, AtDuty: rest}
	}
	card := power.Info{Name: "NVIDIA H200", UUID: uuid}.ID()
	return cardRecord{Card: card, Phases: []cardPhase{{Name: "prefill", Run: run(steady, run(below))}, {Name: "decode", Run: run(decode)}}}
}

// TestCardTable reads invented records of three cards. The second has two records, which count once.
func TestCardTable(t *testing.T) {
	folder := t.TempDir()
	for name, r := range map[string]cardRecord{
		"a.json": inventedCard("GPU-1", 0.96, 0.94, 0.90), "b.json": inventedCard("GPU-2", 0.95, 0.93, 0.88),
		"c.json": inventedCard("GPU-2", 0.95, 0.93, 0.88), "d.json": inventedCard("GPU-3", 0.97, 0.95, 0.89),
	} {
		data, err := json.Marshal(r)
		testmodel.OK(t, err)
		testmodel.OK(t, os.WriteFile(filepath.Join(folder, name), data, 0o666))
	}
	table := cardTable(t, folder)
	for i, want := range []struct {
		phase string
		mean  float64
	}{{"prefill", -4}, {"prefill below the cap", -6}, {"decode", -11}} {
		e, cards := table[i].effects()
		if table[i].phase != want.phase || table[i].plan != "grid=4" || len(cards) != 3 {
			t.Errorf("row %d: %s in %s on %d cards, want grid=4 in %s on 3", i, table[i].plan, table[i].phase, len(cards), want.phase)
		}
		if math.Abs(e.Mean-want.mean) > 0.02 || math.Abs(cards[0].change.Error-0.2) > 0.06 {
			t.Errorf("%s: %.3f %%, errors of the cards %.3f, want %v and 0.2 or, for two records, 0.14", want.phase, e.Mean, cards[0].change.Error, want.mean)
		}
		// The sample deviation of the three cards is 1 point, with errors of 0.2 points.
		if e.Between < 0.97 || e.Between > 0.99 {
			t.Errorf("%s: %.3f points between cards, want 0.98", want.phase, e.Between)
		}
	}
	if row := table[2].row(); !strings.Contains(row, "| `grid=4` | 3 | −11.0 % |") || !strings.Contains(row, "−10.00 (H200-") || !strings.Contains(row, "−12.00 (H200-") {
		t.Errorf("row of decode: %s", row)
	}
	if share, cards := shareBetween(table[2:], savedShare); math.Abs(share-0.09) > 0.005 || cards != 3 {
		t.Errorf("%.3f of the saving between %d cards, want 0.09 and 3", share, cards)
	}
}

// TestStandardError: a copy that is further from 1 than the scatter within the block explains makes the error larger. One card
// shows it, and no difference between cards.
func TestStandardError(t *testing.T) {
	card := inventedCard("GPU-1", 0.96, 0.94, 0.90)
	run := card.Phases[0].Run
	run.Null.RelativeEnergy, run.Null.Interval = 1.01, []float64{1.01 - halfWidth(run.Null), 1.01 + halfWidth(run.Null)}
	if e, want := standardError(run.Result), math.Sqrt((0.01*0.01+2*0.002*0.002)/3); math.Abs(e-want) > 1e-4 {
		t.Errorf("%.4f, want %.4f", e, want)
	}
	p := cardProduct{product: tableProduct, phase: "prefill", plan: "grid=4", readings: comparison{run: run}.readings("a.json", "grid=4")}
	if row := p.row(); !strings.Contains(row, "| 1 | −4.0 % ± 0.6 | – | – | – | "+card.Card+" |") {
		t.Error(row)
	}
}
