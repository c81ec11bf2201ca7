package cost_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// inventedFacts returns facts that all differ from the built-in card's.
func inventedFacts() cost.Facts {
	return cost.Facts{
		Datapath: cost.Datapath{SumProducts: 8, FirstSumProducts: 2, AlignedBits: 18, StationaryRows: 4, StreamingRun: 2, StreamingLanes: 4,
			StreamingSteps: []cost.StreamingStep{{Places: []int{0}, Share: 0.6}, {Places: []int{1}, Share: 0.4}}},
		Memory:    cost.MemoryLags{Element: 4, Sector: 16, Line: 128},
		LagShares: cost.LagShares{Streaming: 0.2, Line: 0.1, Element: 0.3, Sector: 0.15},
		Kernels:   cost.Kernels{ResultProducts: 100, MemoryBoundTokens: 30, StreamedTokensRatio: 2, TileTokens: 20, LaunchSeconds: 1e-4},
		Power: cost.PowerLaw{
			Static: cost.Likely{Usual: 10, Low: 5, High: 20}, ClockExponent: cost.Likely{Usual: 1.8, Low: 1.5, High: 2.2},
			Memory: cost.Likely{Usual: 30, Low: 20, High: 40}, VoltageFloor: cost.Likely{Usual: 0.55, Low: 0.5, High: 0.7},
			MemoryReach: cost.Likely{Usual: 0.7, Low: 0.6, High: 0.9}, MemoryDraw: cost.Likely{Usual: 0.97, Low: 0.9, High: 1.1}},
		Settings: cost.Settings{LowestClock: 500, HighestClock: 2500, LowestCap: 100, DefaultCap: 250},
	}
}

func operandOf(t testing.TB, text string, rows, k int, seed uint64) cost.Operand {
	t.Helper()
	p, s := pattern.MustParse(text), pattern.Spec{DType: weights.BF16, Rows: rows, Cols: k, Seed: seed}
	data, err := p.Generate(t.Context(), s, 1)
	if err != nil {
		t.Fatal(err)
	}
	return func(_ context.Context, row, rows, col, cols int) (out []byte, _ error) {
		for r := row; r < row+rows; r++ {
			out = append(out, data[2*(r*k+col):2*(r*k+col+cols)]...)
		}
		return out, nil
	}
}

// featuresSeen caches features of an invented card: facts → pattern of weights → features.
var featuresSeen = map[string]map[string]*cost.Features{}

// invented returns a calibration with these facts, fitted to invented energies of products of 64×64×64.
func invented(t testing.TB, facts cost.Facts) *cost.Calibration {
	t.Helper()
	const n = 64
	c := &cost.Calibration{Card: "Invented Q1", Date: "2031-01-01", PowerLimit: 250, Facts: facts}
	see := func(w string) *cost.Features {
		f, err := c.Observe(t.Context(), weights.BF16, cost.Product{M: n, N: n, K: n, Role: cost.Streaming}, false,
			operandOf(t, "normal(0,1)", n, n, 1), operandOf(t, w, n, n, 2))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	texts := []string{"zeros", "normal(0,1) | repeat(rows=2)", "normal(0,1) | repeat(rows=16)", "normal(0,1) | round(2)", "normal(0,1) | sparse(0.5)",
		"normal(0,1) | sort", "const(1)", "normal(0,1) | abs", "normal(3,1)"}
	key := fmt.Sprint(facts.Datapath, facts.Memory) // features depend on these facts only
	seen := featuresSeen[key]
	if seen == nil {
		seen = map[string]*cost.Features{}
		for _, text := range append(texts, "normal(0,1)") {
			seen[text] = see(text)
		}
		featuresSeen[key] = seen
	}
	random := seen["normal(0,1)"]
	at := map[string]int{}
	for i, f := range facts.Features() {
		at[f.Name] = i
	}
	energy := func(f *cost.Features, cold bool) float64 {
		first, second := "quad_sum", "stationary_nonzero"
		if cold {
			first, second = "weights_any", "weights_ones"
		}
		return 0.4 + 0.4*f[at[first]]/random[at[first]] + 0.2*f[at[second]]/random[at[second]]
	}
	for _, cold := range []bool{false, true} {
		s := cost.Series{Product: cost.Product{Type: arith.BF16, M: n, N: n, K: n, Role: cost.Streaming, Cold: cold}, Change: "weights",
			Baseline: cost.Baseline{X: "normal(0,1)", W: "normal(0,1)", Joules: 0.05, Seconds: 5e-4, Watts: 100, Clock: 2400, Features: random}}
		if cold {
			s.M = 16
		}
		for i, text := range texts {
			s.Points = append(s.Points, cost.Observation{Family: string(rune('a' + i%3)), X: "normal(0,1)", W: text, Time: 1, Clock: 1,
				Energy: energy(seen[text], cold) + 0.002*float64(i%4), Features: seen[text]})
		}
		c.Series = append(c.Series, s)
	}
	if err := c.Fit(func(arith.Type) bool { return false }, nil); err != nil {
		t.Fatal(err)
	}
	c.Facts.LagShares = facts.LagShares // a fit computes its own
	return c
}

// said returns everything that a calibration says about a few products.
func said(t testing.TB, c *cost.Calibration) (all []any) {
	t.Helper()
	all = append(all, c.Names, c.Models)
	for _, l := range []cost.Workload{{Prefill: 1}, {Decode: 1}} {
		for axis := range 2 {
			all = append(all, c.Facts.Lags(cost.Weights{DType: weights.BF16, Rows: 64, Cols: 64}, axis, true, l))
		}
	}
	for _, p := range []cost.Product{{M: 64, N: 64, K: 64}, {M: 64, N: 64, K: 24}, {M: 180, N: 64, K: 64, Role: cost.Streaming}, {M: 16, N: 64, K: 64, Cold: true}, {M: 32, N: 64, K: 64, Cold: true}} {
		p.Type = arith.BF16
		r, err := c.Predict(t.Context(), p, operandOf(t, "normal(0,1)", p.M, p.K, 1), operandOf(t, "normal(0,1) | round(3) | repeat(rows=2)", p.N, p.K, 2))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Relative, r.RelativeTime, r.Interval, *r.Joules, *r.Watts)
		work, err := c.Work(p, r, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []cost.Setting{{}, {Cap: 60}, {Clock: 500}} {
			if lowest, _ := c.Reach(); lowest.Clock > s.Clock && s.Clock > 0 || lowest.Cap > s.Cap && s.Cap > 0 {
				continue
			}
			held, err := c.AtSetting([]cost.Work{work}, s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, held)
		}
	}
	lowest, highest := c.Reach()
	return append(all, lowest, highest)
}

// TestEveryFactCounts: if any number among an invented card's facts changes, the calibration's results change. So
// each number comes from the file.
func TestEveryFactCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	before := said(t, invented(t, inventedFacts()))
	leaves := testmodel.EachNumber(t, inventedFacts(), changed, func(what string, facts cost.Facts) {
		if !strings.Contains(what, "streaming_run") && reflect.DeepEqual(said(t, invented(t, facts)), before) {
			t.Errorf("%s has no effect", what)
		}
	})
	steps, run := inventedFacts(), inventedFacts()
	steps.Datapath.StreamingSteps = []cost.StreamingStep{{Places: []int{0}, Share: 0.5}, {Places: []int{1}, Share: 0.5}}
	run.Datapath.StreamingRun, run.Datapath.StreamingSteps = 4, []cost.StreamingStep{{Places: []int{0, 2}, Share: 0.6}, {Places: []int{1, 3}, Share: 0.4}}
	for name, facts := range map[string]cost.Facts{"streaming_steps": steps, "streaming_run": run} {
		if reflect.DeepEqual(said(t, invented(t, facts)), before) {
			t.Errorf("facts.datapath.%s has no effect", name)
		}
	}
	if leaves < 35 {
		t.Errorf("only %d facts", leaves)
	}
}

// changed returns another value of a fact, within the fact's range, if it can change alone.
func changed(name string, v float64) float64 {
	switch name {
	case "streaming_run": // it cannot change without its steps
		return v
	case "sum_products", "stationary_rows", "streaming_lanes", "first_sum_products":
		return v / 2
	case "streamed_tokens_per_output", "memory_bound_tokens":
		return v + 3
	case "tile_tokens":
		return 4 * v
	case "element_lag_bytes", "sector_lag_bytes", "line_lag_bytes", "aligned_bits":
		return v + 1
	case "usual":
		return v * 1.02
	case "low":
		return v * 0.98
	case "high":
		return v * 1.03
	}
	return v * 1.1
}

// TestInventedCard: lags, features, predictions and settings agree with the definitions of the facts, and the written
// file names no other card.
func TestInventedCard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "q1.json")
	fitted := invented(t, inventedFacts())
	if err := fitted.Write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cost.ReadCalibration(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"H200", "h200", "1980", `"memory_32"`, `"weights_2"`, "0.35"} {
		if strings.Contains(string(text), other) {
			t.Errorf("the file has %s", other)
		}
	}
	if !reflect.DeepEqual(c.Facts, inventedFacts()) || !reflect.DeepEqual(c.Models, fitted.Models) {
		t.Error("reading gives another calibration than writing")
	}

	w := cost.Weights{DType: weights.BF16, Rows: 64, Cols: 64}
	pairs := func(share float64) []float64 { return []float64{share, share} }
	for _, test := range []struct {
		axis int
		l    cost.Workload
		want []cost.Lag
	}{
		{0, cost.Workload{Prefill: 1}, []cost.Lag{{Distance: 1, Weights: []float64{2 * 0.6 * 0.2, 0}}, {Distance: 7, Weights: []float64{0, 2 * 0.4 * 0.2}}}},
		{1, cost.Workload{Prefill: 1}, []cost.Lag{{Distance: 64, Weights: pairs(0.1)}}},
		{1, cost.Workload{Decode: 1}, []cost.Lag{{Distance: 2, Weights: pairs(0.3)}, {Distance: 8, Weights: pairs(0.15)}}},
	} {
		if got := c.Facts.Lags(w, test.axis, true, test.l); !near(got, test.want) {
			t.Errorf("axis %d, %v: %v, want %v", test.axis, test.l, got, test.want)
		}
	}

	at := map[string]int{}
	for i, name := range c.Names {
		at[name] = i
	}
	for _, name := range []string{"memory_4", "memory_16", "memory_128", "weights_4", "weights_16"} {
		if _, ok := at[name]; !ok {
			t.Errorf("no feature %s", name)
		}
	}
	see := func(weights64 string) *cost.Features {
		f, err := c.Observe(t.Context(), weights.BF16, cost.Product{M: 128, N: 128, K: 256, Role: cost.Streaming}, false,
			operandOf(t, "normal(0,1)", 128, 256, 1), operandOf(t, weights64, 128, 256, 2))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	random, runs := see("normal(0,1)"), see("normal(0,1) | repeat(rows=2)")
	// Steps within a run of two are 0.6 of all steps. The other steps continue in the same lane.
	if got, want := runs[at["streaming_mantissa"]]/random[at["streaming_mantissa"]], 0.4; math.Abs(got-want) > 0.02 {
		t.Errorf("rows equal in pairs toggle %v times as much as random rows, want %v", got, want)
	}

	lowest, highest := c.Reach()
	if (lowest != cost.Setting{Cap: 100, Clock: 480}) || (highest != cost.Setting{Cap: 250, Clock: 2400}) {
		t.Errorf("settings from %v to %v", lowest, highest)
	}
	// For a product on chip, power is 10 W plus a part proportional to clock^1.8, with the clock below 55 %.
	work := []cost.Work{workOf(t, c)}
	full, half := holdAt(t, c, work, 0), holdAt(t, c, work, 1200)
	share := math.Pow(0.55, 0.8) * 0.5
	if want := 10 + (full.Watts-10)*share; math.Abs(half.Watts-want) > 1e-6 || math.Abs(half.Seconds-2*full.Seconds) > 1e-12 {
		t.Errorf("at half the clock %v W and %v s, want %v W and %v s", half.Watts, half.Seconds, want, 2*full.Seconds)
	}
	p, err := c.Predict(t.Context(), cost.Product{Type: arith.BF16, M: 64, N: 64, K: 64}, operandOf(t, "normal(0,1)", 64, 64, 1), operandOf(t, "zeros", 64, 64, 1))
	if err != nil || p.Calibration != "Invented Q1, 2031-01-01" || !(p.Relative < 0.8) {
		t.Errorf("%+v, %v", p, err)
	}
}

func near(got, want []cost.Lag) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i].Distance != want[i].Distance || len(got[i].Weights) != len(want[i].Weights) {
			return false
		}
		for j := range got[i].Weights {
			if math.Abs(got[i].Weights[j]-want[i].Weights[j]) > 1e-15 {
				return false
			}
		}
	}
	return true
}

func workOf(t *testing.T, c *cost.Calibration) cost.Work {
	b := c.Series[0].Baseline
	w, err := c.Work(c.Series[0].Product, cost.Prediction{Joules: &b.Joules, Seconds: &b.Seconds, Watts: &b.Watts, Clock: &b.Clock}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func holdAt(t *testing.T, c *cost.Calibration, work []cost.Work, clock float64) cost.Outcome {
	h, err := c.AtSetting(work, cost.Setting{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestFactsAreChecked: if a field is missing or out of range, the error names it.
func TestFactsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "q1.json")
	if err := invented(t, inventedFacts()).Write(file); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"sum_products":8,`, ``, "facts.datapath.sum_products is missing"},
		{`"usual":1.8,`, ``, "facts.power.clock_exponent.usual is missing"},
		{`"places":[1],`, ``, "facts.datapath.streaming_steps[1].places is missing"},
		{`"lowest_cap_watts":100,`, `"lowest_cap_watts":null,`, "facts.settings.lowest_cap_watts is missing"},
		{`"launch_seconds":`, `"launch":0.1,"launch_seconds":`, `unknown field "launch"`},
		{`"sum_products":8,`, `"sum_products":0,`, "facts.datapath.sum_products is 0"},
		{`"first_sum_products":2,`, `"first_sum_products":3,`, "not a multiple of first_sum_products"},
		{`"streaming_lanes":4,`, `"streaming_lanes":3,`, "powers of two"},
		{`"share":0.6`, `"share":0.5`, "sum to 1"},
		{`"places":[1]`, `"places":[0]`, "place 0 is outside the run, or occurs twice"},
		{`"line_lag_bytes":128`, `"line_lag_bytes":16`, "facts.memory.line_lag_bytes is 16"},
		{`"low":1.5`, `"low":1.9`, "facts.power.clock_exponent.usual is 1.8"},
		{`"highest_clock_mhz":2500`, `"highest_clock_mhz":400`, "facts.settings.lowest_clock_mhz is 500"},
		{`"facts":`, `"fact":`, "the field facts is missing"},
		{`"calibration_version":2`, `"calibration_version":1`, "a file of version 1 must not have the field facts"},
	} {
		testmodel.WriteReplaced(t, file, good, c.from, c.to)
		if _, err := cost.ReadCalibration(file); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}

// TestFilesWithoutFacts: files of version 1 were written for any card with the H200's facts, and must give the same
// results. The values are frozen here: if the H200's facts change, version 1 needs its own facts.
func TestFilesWithoutFacts(t *testing.T) {
	usual, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	frozen := cost.Facts{
		Datapath: cost.Datapath{SumProducts: 16, FirstSumProducts: 4, AlignedBits: 26, StationaryRows: 8, StreamingRun: 4, StreamingLanes: 2,
			StreamingSteps: []cost.StreamingStep{{Places: []int{0, 2}, Share: 0.35}, {Places: []int{1}, Share: 0.35}, {Places: []int{3}, Share: 0.30}}},
		Memory:    cost.MemoryLags{Element: 2, Sector: 32, Line: 64},
		LagShares: cost.LagShares{Streaming: 0.40, Line: 0.04, Element: 0.045, Sector: 0.052},
		Kernels: cost.Kernels{ResultProducts: 250, MemoryBoundTokens: 256, StreamedTokensRatio: 4, TileTokens: 64, LaunchSeconds: 3.7e-6,
			Dequantised: &cost.Dequantised{Operands: 0.6, StreamingOperands: 0.7, FewOperands: 0.64, Codes: 0.26},
			Scaled:      map[string]cost.Scaled{"block": {Operands: 1.19, FewOperands: 0.83, Sums: 0.11}, "channel": {Operands: 1.15, FewOperands: 0.79}}},
		Power: cost.PowerLaw{Static: cost.Likely{Usual: 100, Low: 60, High: 150}, ClockExponent: cost.Likely{Usual: 2.5, Low: 2, High: 3},
			Memory: cost.Likely{Usual: 120, Low: 75, High: 190}, VoltageFloor: cost.Likely{High: 0.6},
			MemoryReach: cost.Likely{Usual: 0.5, Low: 0.2, High: 0.8}, MemoryDraw: cost.Likely{Usual: 1, Low: 0.93, High: 1.03},
			Bursts: &cost.Likely{Usual: 1.18, Low: 1.16, High: 1.2}},
		Settings: cost.Settings{LowestClock: 345, HighestClock: 1980, LowestCap: 200, DefaultCap: 700},
	}
	file := filepath.Join(t.TempDir(), "old.json")
	testmodel.WriteChanged(t, file, usual, func(fields map[string]any) {
		delete(fields, "facts")
		fields["calibration_version"], fields["card"] = 1, "Another card"
	})
	old, err := cost.ReadCalibration(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(old.Facts, frozen) {
		t.Errorf("facts of version 1: %+v", old.Facts)
	}
	if err := old.Write(file); err != nil {
		t.Fatal(err)
	}
	if again, err := cost.ReadCalibration(file); err != nil || !reflect.DeepEqual(again.Facts, frozen) {
		t.Errorf("written anew: %v", err)
	}
	if got := fmt.Sprint(old.Card, len(old.Series)); got != fmt.Sprint("Another card", len(usual.Series)) {
		t.Error(got)
	}
}
