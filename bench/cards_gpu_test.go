package bench

import (
	"cmp"
	"encoding/json"
	"flag"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

var (
	cardsOut  = flag.String("cards", "", "measure the plans of docs/cards.md on this card, and write a record to this folder")
	cardsSim  = flag.Bool("cards-simulated", false, "run on a simulated card: the figures mean nothing")
	cardsTime = flag.Duration("cards-time", time.Second, "time of the blocks of prefill at the cap; below it three times as long, in decode half as long; the first block of each row always runs to its end")
	cardsCard = flag.Int("cards-device", 0, "number of the card")
	cardSide  = flag.Int("cards-side", 8192, "number of outputs and of inputs of the measured layer, and of tokens in prefill")
)

// cardRecord has the measurements of one run of TestGPUCards on a card.
type cardRecord struct {
	Card    string      `json:"card_id"`
	Date    string      `json:"date"`
	Command string      `json:"command"`
	Phases  []cardPhase `json:"phases"`
}

// cardPhase is a phase, with every plan measured in it.
type cardPhase struct {
	Name   string          `json:"phase"`
	Tokens int             `json:"tokens"`
	Run    *measure.Result `json:"run"`
	rows   []cardRow
}

// cardRow is how long the plans are measured at a duty.
type cardRow struct {
	duty   float64
	time   float64 // of the blocks, in -cards-time
	window time.Duration
}

// runs returns the phase's comparisons, back to back and in bursts, with their names on the page.
func (p cardPhase) runs() iter.Seq2[string, *measure.Result] {
	return func(yield func(string, *measure.Result) bool) {
		if !yield(p.Name, p.Run) {
			return
		}
		for _, run := range p.Run.AtDuty {
			if !yield(p.Name+" below the cap", run) {
				return
			}
		}
	}
}

// cardPhases returns the phases of a record. Prefill is measured at the power cap, back to back, and below it, in bursts, where readings
// scatter more. Decode is below the cap without gaps.
func cardPhases() []cardPhase {
	const short = 500 * time.Millisecond
	return []cardPhase{
		{Name: "prefill", Tokens: *cardSide, rows: []cardRow{{1, 1, short}, {0.4, 3, 3 * short}}},
		{Name: "decode", Tokens: cost.DecodeTokens, rows: []cardRow{{0, 0.5, short}}},
	}
}

// cardPasses are the plans that are measured. Zeros are measured, too.
var cardPasses = []string{"round=4", "grid=16", "grid=4", "grid=2", "trellis=0.19"}

// cardWeights returns the layer of normally distributed weights, after no passes, after each of cardPasses, and zero.
func cardWeights(t *testing.T) (names []string, all []gemm.Matrix) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "normal(0,0.02)")
	normalModel(t, source, *cardSide)
	add := func(path string) {
		m := testmodel.Open(t, path)
		from, ok := m.Tensor(passLayer)
		if !ok {
			t.Fatalf("%s has no %s", path, passLayer)
		}
		w := gemm.NewMatrix(weights.BF16, *cardSide, *cardSide)
		copy(w.Data, from.Data)
		repeat(w.Data, 2**cardSide)
		names, all = append(names, filepath.Base(path)), append(all, w)
	}
	add(source)
	for _, text := range cardPasses {
		passes, err := transform.ParsePasses(text)
		testmodel.OK(t, err)
		out := filepath.Join(dir, text)
		passConvert(t, source, out, transform.Options{Passes: passes})
		add(out)
	}
	return append(names, "zeros"), append(all, gemm.NewMatrix(weights.BF16, *cardSide, *cardSide))
}

// TestGPUCards makes a record of this card. It skips without -cards.
func TestGPUCards(t *testing.T) {
	if *cardsOut == "" {
		t.Skip("-cards FOLDER measures")
	}
	m, err := measure.Open(*cardsCard)
	if *cardsSim {
		m, err = measure.Simulated(power.DefaultSim()), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	now := time.Now().UTC()
	r := cardRecord{Card: m.Card().Info().ID(), Date: now.Format(time.RFC3339), Command: strings.Join(os.Args, " ")}
	names, layers := cardWeights(t)
	var selfTest *power.SelfTest
	for _, c := range cardPhases() {
		x, err := pattern.MustParse("normal(0,1)").Generate(t.Context(), pattern.Spec{DType: weights.BF16, Rows: c.Tokens, Cols: *cardSide, Seed: 1}, 0)
		testmodel.OK(t, err)
		var all []measure.Candidate
		for i, w := range layers {
			all = append(all, measure.Candidate{Name: names[i], Products: []cuda.Product{{
				Name: names[i], Problem: gemm.Problem{M: c.Tokens, N: *cardSide, K: *cardSide, Type: arith.BF16},
				X: gemm.Matrix{DType: weights.BF16, Rows: c.Tokens, Cols: *cardSide, Data: x}, W: w,
			}}})
		}
		for _, row := range c.rows {
			o := measure.Options{Cold: c.Tokens == cost.DecodeTokens, Meter: power.Options{
				Time: time.Duration(row.time * float64(*cardsTime)), WarmUp: 4 * time.Second, Window: row.window, SelfTest: selfTest,
				Seed: uint64(now.Unix()), Date: now, Command: r.Command,
			}}
			if row.duty > 0 {
				o.Duties = []float64{row.duty}
			}
			run, err := measure.Compare(t.Context(), m, all[0], all[1:], o)
			if err != nil {
				t.Errorf("%s, duty %v: %v", c.Name, row.duty, err)
			}
			switch {
			case run == nil:
				continue
			case c.Run == nil:
				c.Run = run
			default:
				c.Run.AtDuty = append(c.Run.AtDuty, run)
			}
			selfTest = run.SelfTest
		}
		if c.Run == nil {
			continue
		}
		for name, run := range c.runs() {
			t.Logf("%s, %s: %.0f W, null %.4f, %v", r.Card, name, run.Baseline.Watts, run.Null.RelativeEnergy, run.Invalid)
			for _, v := range run.Variants {
				t.Logf("  %-12s energy %.4f, time %.4f, %.0f W", v.Name, v.RelativeEnergy, v.RelativeTime, v.Watts)
			}
		}
		r.Phases = append(r.Phases, c)
	}
	data, err := json.Marshal(r)
	testmodel.OK(t, err)
	testmodel.OK(t, os.WriteFile(filepath.Join(*cardsOut, cmp.Or(r.Card, "unknown")+now.Format("-2006-01-02-1504")+".json"), data, 0o666))
}
