package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/weights"
)

// simulatedWithin is the largest error allowed for a simulated sweep at the card's default cap. Larger errors are listed
// with their reasons.
const simulatedWithin = 0.02

var simulatedOff = []struct {
	files, what []string
	within      float64
	why         string
}{
	{[]string{"order-stationary-2"}, []string{"llama-17m J", "llama-17m s"}, 0.025, "this card takes more energy than the others for the same operands"},
	{[]string{"layers-stationary"}, []string{"llama-17m J", "llama-17m s"}, 0.06, "the model's own activations take more energy than the normal activations of the prediction"},
	{[]string{"order-stationary-2", "layers-stationary"}, []string{"llama-17m MHz"}, 0.05, "the predicted time is off, and the predicted clock with it"},
	{[]string{"level-decode", "frontier-decode"}, []string{"llama-17m J"}, 0.03, "the memory of these cards draws more power in decode than that of most cards"},
	{[]string{"layers-decode-stationary", "order-decode"}, []string{"llama-17m J", "llama-17m W"}, 0.075, "the memory of these cards draws less power in decode than that of most cards"},
	{[]string{"powers-prefill"}, []string{"8192³ MHz"}, 0.025, "this card has the highest clock of all cards"},
	{[]string{"several-prefill card 0"}, []string{"llama-17m MHz"}, 0.025, "the card reaches the predicted time at a lower clock"},
	{[]string{"several-decode card 0"}, []string{"llama-17m J", "llama-17m W"}, 0.05, "the memory of this card draws more power in decode than that of most cards"},
	{[]string{"frontier-decode"}, []string{"llama-17m s"}, 0.025, "this card is the slowest of all cards"},
}

func allowed(p sweepPoint) (float64, string) {
	for _, o := range simulatedOff {
		if slices.Contains(o.files, p.file) && slices.Contains(o.what, p.what) {
			return o.within, o.why
		}
	}
	return simulatedWithin, ""
}

// llamaKinds are the linear layers of llama-17m, one of each kind.
var llamaKinds = []struct {
	tensor string
	n      int
}{
	{"model.layers.2.self_attn.q_proj.weight", 12}, {"model.layers.2.self_attn.k_proj.weight", 12},
	{"model.layers.2.mlp.gate_proj.weight", 12}, {"model.layers.2.mlp.down_proj.weight", 6}, {"lm_head.weight", 1},
}

// llamaStack is the number of copies that measure stacks in decode.
const llamaStack = 43

// sweepPoint is a recorded figure and its prediction.
type sweepPoint struct {
	file, what          string
	measured, predicted float64
}

func (p sweepPoint) off() float64 { return p.predicted/p.measured - 1 }

// TestSweepAgainstMeasured checks that a simulated sweep reproduces the measurements at the default cap. -v prints the
// table.
func TestSweepAgainstMeasured(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("8192³", func(t *testing.T) { holdAgainst(t, squarePoints(t, c)) })
	t.Run("llama-17m", func(t *testing.T) {
		model := llama17m(t)
		if model == "" {
			t.Skip("no llama-17m here")
		}
		holdAgainst(t, llamaPoints(t, c, model))
	})
}

func holdAgainst(t *testing.T, all []sweepPoint) {
	for _, p := range all {
		within, why := allowed(p)
		t.Logf("%-24s %-20s measured %-10.4g predicted %-10.4g %+5.1f %%  %s", p.file, p.what, p.measured, p.predicted, 100*p.off(), why)
		if off := math.Abs(p.off()); !(off <= within) {
			t.Errorf("%s: %s: measured %v, predicted %v: more than %.1f %% off", p.file, p.what, p.measured, p.predicted, 100*within)
		} else if why != "" && off < within/3 {
			t.Errorf("%s: %s is only %.1f %% off: it needs no excuse any more", p.file, p.what, 100*off)
		}
	}
}

func held(t *testing.T, c *cost.Calibration, work ...cost.Work) cost.Outcome {
	t.Helper()
	h, err := c.AtSetting(work, cost.Setting{Cap: c.PowerLimit})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// squarePoints returns GEMMs of 8192³ in BF16.
func squarePoints(t *testing.T, c *cost.Calibration) (all []sweepPoint) {
	p := cost.Product{Type: arith.BF16, M: 8192, N: 8192, K: 8192}
	at := func(w string) cost.Outcome {
		r, err := c.Predict(t.Context(), p, drawn(t, "normal(0,1)", 8192, 8192), drawn(t, w, 8192, 8192))
		if err != nil {
			t.Fatal(err)
		}
		work, err := c.Work(p, r, 1)
		if err != nil {
			t.Fatal(err)
		}
		return held(t, c, work)
	}
	base := at("normal(0,0.02)")
	for _, file := range []string{"patterns-stationary", "pair-1", "pair-2", "null-20s", "null-60s", "powers-prefill"} {
		var have measure.Result
		read(t, recorded+file+".json", &have)
		all = append(all, absolute(file, "8192³", have.Baseline.Joules, have.Baseline.Seconds, have.Baseline.Watts, *have.Baseline.SMClock, base)...)
	}
	var have measure.Result
	read(t, recorded+"patterns-stationary.json", &have)
	for name, w := range map[string]string{"low-4-zeroed": "normal(0,0.02) | zero(low=4)", "constant": "const(0.02)"} {
		for _, v := range have.Variants {
			if v.Name == "patterns.safetensors:"+name {
				h := at(w)
				all = append(all, relative("patterns-stationary", name, v.RelativeEnergy, v.RelativeTime, h, base)...)
			}
		}
	}
	return all
}

func absolute(file, what string, joules, seconds, watts, clock float64, h cost.Outcome) []sweepPoint {
	return []sweepPoint{{file, what + " J", joules, h.Joules}, {file, what + " s", seconds, h.Seconds},
		{file, what + " W", watts, h.Watts}, {file, what + " MHz", clock, h.Clock}}
}

func relative(file, what string, energy, time float64, after, before cost.Outcome) []sweepPoint {
	return []sweepPoint{{file, what + " energy", energy, after.Joules / before.Joules}, {file, what + " time", time, after.Seconds / before.Seconds}}
}

func drawn(t *testing.T, text string, rows, cols int) cost.Operand {
	t.Helper()
	p, err := pattern.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, row, rows0, col, cols0 int) ([]byte, error) {
		return p.Block(ctx, pattern.Spec{DType: weights.BF16, Rows: rows, Cols: cols, Seed: 2},
			pattern.Range{From: row, To: row + rows0}, pattern.Range{From: col, To: col + cols0})
	}
}

// llamaPoints returns the layers of llama-17m, unchanged and with round=4 and grid=4.
func llamaPoints(t *testing.T, c *cost.Calibration, model string) (all []sweepPoint) {
	dirs := map[string]string{"": model}
	for _, pass := range []string{"round=4", "grid=4"} {
		out := filepath.Join(t.TempDir(), "out")
		if status := cli.Main(t.Context(), []string{"lowtoggle", "convert", model, out, "--passes", pass, "--quiet"}, io.Discard, os.Stderr); status != 0 {
			t.Fatal(pass, status)
		}
		dirs[pass] = out
	}
	for _, phase := range []struct {
		tokens, stack int
		files         map[string]map[string]string // by file: the names of variants
	}{
		{8192, 1, map[string]map[string]string{
			"level-stationary":   {"grid4:": "grid=4"},
			"layers-stationary":  {"round-4:": "round=4", "grid-4:": "grid=4"},
			"order-stationary-1": {"grid:": "grid=4"}, "order-stationary-2": {},
			"several-prefill": {"output": "round=4"},
		}},
		{16, llamaStack, map[string]map[string]string{
			"level-decode":             {"grid4:": "grid=4"},
			"layers-decode-stationary": {"round-4:": "round=4", "grid-4:": "grid=4"},
			"order-decode":             {"grid:": "grid=4"}, "frontier-decode": {},
			"several-decode": {"output": "round=4"},
		}},
	} {
		at := map[string]cost.Outcome{}
		for pass, dir := range dirs {
			at[pass] = llama(t, c, dir, phase.tokens, phase.stack)
		}
		base := at[""]
		for file, variants := range phase.files {
			for name, have := range recordedRuns(t, file) {
				b := have.Baseline
				all = append(all, absolute(name, "llama-17m", b.Joules, b.Seconds, b.Watts, *b.SMClock, base)...)
				for _, v := range have.Variants {
					if pass, ok := variants[v.Name]; ok {
						all = append(all, relative(name, pass, v.RelativeEnergy, v.RelativeTime, at[pass], base)...)
						all = append(all, sweepPoint{name, pass + " power", v.Watts / b.Watts, at[pass].Watts / base.Watts})
					}
				}
			}
		}
	}
	return all
}

// recordedRuns returns the runs in a file by their names: one, or one for each card.
func recordedRuns(t *testing.T, file string) map[string]measure.Result {
	var have struct {
		measure.Result
		Energy struct {
			Measured struct {
				Cards []struct {
					Phases []struct{ Total struct{ Run measure.Result } }
				}
			}
		}
	}
	read(t, recorded+file+".json", &have)
	cards := have.Energy.Measured.Cards
	if len(cards) == 0 {
		return map[string]measure.Result{file: have.Result}
	}
	all := map[string]measure.Result{}
	for i, card := range cards {
		all[fmt.Sprintf("%s card %d", file, i)] = card.Phases[0].Total.Run
	}
	return all
}

// llama sums all layers at the default cap, for one pass.
func llama(t *testing.T, c *cost.Calibration, dir string, tokens, stack int) cost.Outcome {
	t.Helper()
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var work []cost.Work
	for _, kind := range llamaKinds {
		tensor, ok := m.Tensor(kind.tensor)
		if !ok {
			t.Fatal(dir, kind.tensor)
		}
		w, err := gemm.FromTensor(tensor, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := cost.Product{Type: arith.BF16, M: tokens, N: w.Rows, K: w.Cols, Cold: tokens == 16}
		r, err := c.Predict(t.Context(), p, drawn(t, "normal(0,1)", tokens, w.Cols), blocksOf(w))
		if err != nil {
			t.Fatal(err)
		}
		one, err := c.Work(p, r, stack)
		if err != nil {
			t.Fatal(err)
		}
		for range kind.n {
			work = append(work, one)
		}
	}
	return held(t, c, work...)
}

func blocksOf(m gemm.Matrix) cost.Operand {
	size := m.DType.Bits() / 8
	return func(_ context.Context, row, rows, col, cols int) ([]byte, error) {
		var data []byte
		for r := row; r < row+rows; r++ {
			data = append(data, m.Data[(r*m.Cols+col)*size:(r*m.Cols+col+cols)*size]...)
		}
		return data, nil
	}
}
