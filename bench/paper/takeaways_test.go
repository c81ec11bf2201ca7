package paper

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// world says what energy a point takes.
type world func(id string, x float64) float64

// uniform takes the same whatever is multiplied.
func uniform(string, float64) float64 { return 1 }

// in is a world that differs in one experiment, by so much at the end of its axis that it begins
// with 1.
func in(id string, slope float64) world {
	return func(at string, x float64) float64 {
		if at == id {
			return 1 + slope*x
		}
		return 1
	}
}

const halfWidth = 0.004

// invented results of a setup.
func invented(s experiment.Setup, w world) (list []Result) {
	for _, e := range experiments {
		for _, p := range e.in(s) {
			energy := w(e.ID, p.At)
			list = append(list, Result{Setup: s, Experiment: e.ID, X: p.At, A: p.X, B: p.W,
				Relative: energy, HalfWidth: halfWidth, RelativeTime: 1, Watts: 500 * energy, Clock: 1500})
		}
	}
	return list
}

func assessed(t *testing.T, id string, results []Result) Assessment {
	t.Helper()
	all := Assess(results)
	i := slices.IndexFunc(all, func(j Assessment) bool { return j.ID == id })
	if i < 0 {
		t.Fatalf("no takeaway %s", id)
	}
	return all[i]
}

func fp16() experiment.Setup { return Setups()[0] }

// TestAssess: every takeaway holds in a world in which it does, and not in two in which it does not.
// Where nothing depends on the operands only T1 holds.
func TestAssess(t *testing.T) {
	full := func(id string, x float64) float64 { // what sorting saves
		saving := map[string]float64{"5a": 0.1, "5b": 0.2, "5c": 0.1, "5d": 0.1}
		return 1 - saving[id]*x/100
	}
	for _, c := range []struct {
		id           string
		holds, fails world
	}{
		{"T1", in("3a", 1e-6), in("3a", 3e-5)},
		{"T2", in("3b", -1e-5), in("3b", 1e-5)},
		{"T3", in("3c", 1e-4), in("3c", -1e-5)},
		{"T4", in("4a", 0.01), in("4a", -0.001)},
		{"T5", in("4b", 0.01), in("4b", -0.01)},
		{"T6", in("4c", 0.01), in("4c", -0.01)},
		{"T8", in("5a", -0.001), in("5a", 0.001)},
		{"T9", full, in("5a", -0.001)},
		{"T10", in("5c", -0.001), in("5c", 0.001)},
		{"T11", full, func(id string, x float64) float64 { // sorting fully saves less
			if id == "5d" {
				return 1 - 0.1*x/100
			}
			return 1 - 0.05*x/100
		}},
		{"T12", in("6a", -0.001), in("6a", 0.001)},
		{"T13", func(id string, x float64) float64 {
			if id == "6b" {
				return 1 + x*(100-x)/50000
			}
			return 1
		}, in("6b", -0.001)},
		{"T14", in("6c", -0.01), in("6c", 0.01)},
		{"T15", in("6d", -0.01), in("6d", 0.01)},
	} {
		if j := assessed(t, c.id, invented(fp16(), c.holds)); j.Verdict != "holds" {
			t.Errorf("%s: %s in a world in which it holds: %+v", c.id, j.Verdict, j.Effects)
		}
		if j := assessed(t, c.id, invented(fp16(), c.fails)); j.Verdict != "does not hold" {
			t.Errorf("%s: %s in a world in which it does not: %+v", c.id, j.Verdict, j.Effects)
		}
		want := "undecided" // but for what is assessed by sameness, and by power
		switch c.id {
		case "T1":
			want = "holds"
		case "T7":
			want = "does not hold"
		}
		if j := assessed(t, c.id, invented(fp16(), uniform)); j.Verdict != want {
			t.Errorf("%s: %s where nothing depends on the operands", c.id, j.Verdict)
		}
	}
}

// TestAssessWithin: what lies within the interval decides nothing, just beyond it does, and without an
// interval nothing is decided.
func TestAssessWithin(t *testing.T) {
	both := math.Sqrt2 * halfWidth / 100 // of the difference, over 100 %
	for share, want := range map[float64]string{-1.02: "does not hold", 0.98: "undecided", 1.02: "holds"} {
		if j := assessed(t, "T8", invented(fp16(), in("5a", -share*both))); j.Verdict != want {
			t.Errorf("a fall of %v intervals: %s", share, j.Verdict)
		}
	}
	results := invented(fp16(), in("5a", -0.001))
	for i := range results {
		results[i].HalfWidth = math.NaN()
	}
	j := assessed(t, "T8", results)
	if j.Verdict != "undecided" {
		t.Errorf("without an interval: %s", j.Verdict)
	}
	js, err := json.Marshal(j)
	if err != nil || strings.Contains(string(js), "half_width") || !strings.Contains(string(js), `"setup":"fp16-2048-both"`) {
		t.Errorf("%s, %v", js, err)
	}
}

// TestHungriest: T7 compares power, in setups that are otherwise alike.
func TestHungriest(t *testing.T) {
	watts := func(s experiment.Setup, by float64) []Result {
		list := invented(s, uniform)
		for i := range list {
			list[i].Watts *= by
		}
		return list
	}
	s := Setups()
	for _, c := range []struct {
		fp16, others float64
		want         string
	}{{1.1, 1, "holds"}, {1.005, 1, "does not hold"}, {1, 1.1, "does not hold"}} {
		results := slices.Concat(watts(s[0], c.fp16), watts(s[1], c.others), watts(s[2], 0.9), watts(s[4], 2)) // s[4] is BF16
		j := assessed(t, "T7", results)
		if j.Verdict != c.want {
			t.Errorf("%v against %v: %s", c.fp16, c.others, j.Verdict)
		}
		if want := c.fp16/c.others - 1; math.Abs(j.Effects[0].Power-want) > 1e-9 || !strings.Contains(j.Effects[0].Where, "fp32") {
			t.Errorf("%v against %v: %+v", c.fp16, c.others, j.Effects)
		}
	}
	if j := assessed(t, "T7", watts(s[0], 1)); j.Verdict != "not measured" {
		t.Errorf("alone: %s", j.Verdict)
	}
}

// TestVerdict: several setups, of which some were not measured.
func TestVerdict(t *testing.T) {
	falls, rises := in("5a", -0.001), in("5a", 0.001)
	s := Setups()
	for _, c := range []struct {
		worlds []world
		want   string
	}{
		{nil, "not measured"},
		{[]world{falls, falls}, "holds"},
		{[]world{falls, rises}, "holds only in fp16-2048-both"},
		{[]world{rises, falls, falls}, "holds except in fp16-2048-both"},
		{[]world{rises, rises, rises}, "does not hold"},
	} {
		var results []Result
		for i, w := range c.worlds {
			results = append(invented(s[i], w), results...) // the order must not matter
		}
		if j := assessed(t, "T8", results); j.Verdict != c.want {
			t.Errorf("%d setups: %s, want %s", len(c.worlds), j.Verdict, c.want)
		}
	}
}

// TestAssessSome: what was not measured is not assessed, and a quick job is enough for all but T7,
// which needs other types.
func TestAssessSome(t *testing.T) {
	for _, j := range Assess(nil) {
		if j.Verdict != "not measured" || len(j.Effects) > 0 {
			t.Errorf("%s: %s", j.ID, j.Verdict)
		}
	}
	for _, s := range Setups() {
		quick := map[operands]bool{}
		for _, p := range Job(s, Points{Most: Quick}).Points {
			quick[operandsOf(p)] = true
		}
		results := slices.DeleteFunc(invented(s, uniform), func(r Result) bool { return !quick[operands{r.A, r.B}] })
		for _, j := range Assess(results) {
			without := j.ID == "T7" || j.ID == "T9" && s.Change == experiment.Weights || j.ID == "T2" && s.Type == arith.INT8
			if measured := j.Verdict != "not measured"; measured == without {
				t.Errorf("%v: %s is %s", s, j.ID, j.Verdict)
			}
		}
	}
}
