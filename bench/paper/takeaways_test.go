package paper

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
)

// world returns the energy of a point.
type world func(id string, x float64) float64

// uniform is a world in which all operands take the same energy.
func uniform(string, float64) float64 { return 1 }

// in returns a world in which only one experiment changes energy: from 1 at the start of its axis by slope to the end.
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
				Relative: energy, HalfWidth: halfWidth, Freedom: 60, RelativeTime: 1, Watts: 500 * energy, Clock: 1500, Seeds: 1,
				Readings: []Reading{{Card: "one", Idle: 100, Watts: 500 * energy, Clock: 1500}}})
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

// TestAssess: every takeaway holds in a world in which it is true, and fails in two in which it is false. If energy does not
// depend on the operands, only T1 holds.
func TestAssess(t *testing.T) {
	full := func(id string, x float64) float64 { // saving by sorting
		saving := map[string]float64{"5a": 0.1, "5b": 0.2, "5c": 0.1, "5d": 0.1}
		return 1 - saving[id]*x/100
	}
	for _, c := range []struct {
		id           string
		holds, fails world
	}{
		{"T1", in("3a", 1e-6), in("3a", 3e-5)},
		{"T2", in("3b", -1e-4), in("3b", 1e-4)},
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
		want := "undecided" // except for takeaways that hold if nothing changes
		if c.id == "T1" {
			want = "holds"
		}
		if j := assessed(t, c.id, invented(fp16(), uniform)); j.Verdict != want {
			t.Errorf("%s: %s where nothing depends on the operands", c.id, j.Verdict)
		}
	}
}

// TestAssessWithin: a change within the interval is undecided, a change just beyond it is decided, and without an interval
// nothing is decided.
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

// TestPlaces: rules that compare with one place on an axis use that place in every type. It saves a tenth, and all others cost as
// much, or the other way round. 4a begins with operands that save.
func TestPlaces(t *testing.T) {
	type places map[arith.Type]float64
	for id, c := range map[string]struct {
		experiment string
		at         places
	}{
		"T2":  {"3b", places{arith.FP16: 512, arith.FP16CUDA: 512, arith.BF16: 64, arith.FP8: 4, arith.FP32: 8192}},
		"T4":  {"4a", places{arith.FP16: 50, arith.FP16CUDA: 50, arith.BF16: 50, arith.FP8: 50, arith.FP32: 50, arith.INT8: 50}},
		"T12": {"6a", places{arith.FP16: 90, arith.FP16CUDA: 90, arith.BF16: 90, arith.FP8: 90, arith.FP32: 90, arith.INT8: 90}},
		"T14": {"6c", places{arith.FP16: 10, arith.FP16CUDA: 10, arith.BF16: 6, arith.FP8: 3, arith.FP32: 23, arith.INT8: 4}},
		"T15": {"6d", places{arith.FP16: 6, arith.FP16CUDA: 6, arith.BF16: 9, arith.FP8: 4, arith.FP32: 9, arith.INT8: 4}},
	} {
		for _, s := range Setups()[:6] {
			place, measured := c.at[s.Type]
			for sign, want := range map[float64]string{-1: "holds", 1: "does not hold"} {
				if id == "T4" {
					sign = -sign
				}
				j := assessed(t, id, invented(s, func(experiment string, x float64) float64 {
					switch {
					case experiment != c.experiment || x == 0:
						return 1
					case x == place:
						return 1 + 0.1*sign
					}
					return 1 - 0.1*sign
				}))
				if !measured {
					want = "not measured"
				}
				if j.Verdict != want {
					t.Errorf("%s in %v: %s, want %s: %v", id, s.Type, j.Verdict, want, j.Effects)
				}
			}
		}
	}
}

// TestRisingLine: T5 and T6 fit a line, so one point at the end of an axis does not decide.
func TestRisingLine(t *testing.T) {
	j := assessed(t, "T5", invented(fp16(), func(id string, x float64) float64 {
		return cmp.Or(map[float64]float64{4: 1.5, 6: 1.5, 8: 2, 10: 2, 16: 0.95}[x], 1)
	}))
	if e := j.Effects[0]; j.Verdict != "holds" || math.Abs(e.Energy-0.2593) > 0.0001 || math.Abs(e.HalfWidth-0.00486) > 0.00001 {
		t.Errorf("%s: %+v", j.Verdict, e)
	}
}

// TestLargest: T1 and T13 pick the largest of several changes. The picked change must exceed the limit by more than a single change.
func TestLargest(t *testing.T) {
	single := math.Sqrt2 * halfWidth // of the difference of two points
	for _, c := range []struct {
		id    string
		world world
		want  string
	}{
		{"T1", in("3a", (0.02-1.1*single)/1024), "holds"}, // FP16's axis ends at 1024
		{"T1", in("3a", (0.02-0.9*single)/1024), "undecided"},
		{"T1", in("3a", (0.02+1.1*single)/1024), "undecided"},
		{"T1", in("3a", (0.02+1.6*single)/1024), "does not hold"},
		{"T13", middle(-1.1 * single), "does not hold"},
		{"T13", middle(-0.9 * single), "undecided"},
		{"T13", middle(1.1 * single), "undecided"},
		{"T13", middle(1.5 * single), "holds"},
	} {
		j := assessed(t, c.id, invented(fp16(), c.world))
		if j.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.id, j.Verdict, c.want, j.Effects)
		}
		js, err := json.Marshal(j.Effects[0])
		if err != nil || !strings.Contains(string(js), `"low":`) || !strings.Contains(string(js), `"high":`) || !strings.Contains(j.Effects[0].String(), " … ") {
			t.Errorf("%s, %s, %v", js, j.Effects[0], err)
		}
	}
}

// middle changes the energy of the points between the ends of 6b.
func middle(by float64) world {
	return func(id string, x float64) float64 {
		if id == "6b" && 0 < x && x < 100 {
			return 1 + by
		}
		return 1
	}
}

// TestRandomMean: the mean of T2 leaves each element three random bits or more, and the next one fewer.
func TestRandomMean(t *testing.T) {
	entropy := func(typ arith.Type, mean float64) (bits float64) {
		counts := map[float64]float64{}
		for _, v := range values(typ.Operand(), draw(t, pattern.MustParse(normal(mean, 1)), typ.Operand(), 1)) {
			counts[v]++
		}
		for _, n := range counts {
			bits -= n / (rows * cols) * math.Log2(n/(rows*cols))
		}
		return bits
	}
	for _, typ := range usedTypes() {
		if typ == arith.INT8 {
			continue
		}
		axis := means(typ)
		i := slices.Index(axis, randomMean(typ))
		if bits := entropy(typ, axis[i]); i < 1 || bits < 2.7 {
			t.Errorf("%v: %.1f random bits at a mean of %v", typ, bits, axis[i])
		}
		if i+1 < len(axis) {
			if bits := entropy(typ, axis[i+1]); bits > 2.3 {
				t.Errorf("%v: %.1f random bits at a mean of %v", typ, bits, axis[i+1])
			}
		}
	}
}

// TestExceptions: among many setups, a takeaway fails in one setup only by a larger margin than in a single setup.
func TestExceptions(t *testing.T) {
	both := math.Sqrt2 * halfWidth / 100 // of the difference, over 100 %
	for share, want := range map[float64]string{1.2: "holds; undecided in 1 of 15 series", 1.7: "holds except in fp16-2048-both"} {
		var results []Result
		for i, s := range Setups() {
			w := in("5a", -2*both)
			if i == 0 {
				w = in("5a", share*both)
			}
			results = append(results, invented(s, w)...)
		}
		if j := assessed(t, "T8", results); j.Verdict != want {
			t.Errorf("a rise of %v intervals: %s", share, j.Verdict)
		}
		if j := assessed(t, "T8", results[:len(invented(fp16(), uniform))]); j.Verdict != "does not hold" {
			t.Errorf("a rise of %v intervals alone: %s", share, j.Verdict)
		}
	}
}

// TestVerdict: some of several setups were not measured.
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

// TestAssessSome: takeaways without measurements are not assessed, and a quick job suffices for all except T7, which needs other
// types.
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
