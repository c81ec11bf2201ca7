package cost

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestGrowthHolds: with its growth, the 95 % interval contains 95 % of the points, for any saving.
func TestGrowthHolds(t *testing.T) {
	const n = 400
	var list []LeftOut
	for i := range n {
		saved := 0.05 + 0.4*float64(i%20)/20
		off := saved * float64(i) / n
		if i%2 == 1 {
			off = -off
		}
		list = append(list, LeftOut{Point: &Observation{Energy: 1 - saved + off}, Predicted: 1 - saved})
	}
	q, held := qualityOf(list), 0
	for _, l := range list {
		if math.Abs(l.Error()) <= q.HalfWidth(l.Predicted) {
			held++
		}
	}
	if share := float64(held) / n; q.Points != n || math.Abs(share-0.95) > 0.005 {
		t.Errorf("%d of %d intervals hold their point: %+v", held, n, q)
	}
	if few := qualityOf(list[:fewTested-1]); few.Growth != growthUnknown {
		t.Errorf("%d points tell a growth of %v", few.Points, few.Growth)
	}
}

// TestZerosCountOnce: all-zero weights end several families of a series, and errors count them once.
func TestZerosCountOnce(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Models {
		zeros, seen := map[*Series]int{}, 0
		list := c.LeaveOut(m.Type, m.Cold, nil)
		for _, l := range list {
			if l.Point.Features[weightOnes] == 0 {
				zeros[l.Series]++
			}
			if l.Repeated {
				seen++
			}
		}
		repeated := 0
		for _, n := range zeros {
			repeated += n - 1
		}
		if seen != repeated || m.Quality.Points != len(list)-repeated {
			t.Errorf("%s: of %d points, %d repeat zeros, %d are marked, and errors count %d", m.Type, len(list), repeated, seen, m.Quality.Points)
		}
		if m.Type == arith.BF16 && !m.Cold && repeated != 9 {
			t.Errorf("%d points of BF16 repeat zeros, want 9", repeated)
		}
	}
}

// changed returns a copy of a calibration in which some points use a tenth less energy.
func changed(c *Calibration, which func(s *Series, o *Observation) bool) *Calibration {
	other := &Calibration{Facts: c.Facts, Names: c.Names}
	for i := range c.Series {
		s := c.Series[i]
		s.Points = slices.Clone(s.Points)
		for p := range s.Points {
			if o := &s.Points[p]; which(&s, o) {
				o.Energy *= 0.9
			}
		}
		other.Series = append(other.Series, s)
	}
	return other
}

// TestLeftOutIsNotSeen: predictions of points do not depend on the energy of points that are left out with them:
// points of their class, all-zero weights, or other points of their card.
func TestLeftOutIsNotSeen(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	card := c.Series[0].Card
	for name, test := range map[string]struct {
		which func(s *Series, o *Observation) bool
		same  func(l LeftOut) bool // points with unchanged predictions
		of    func(*Calibration) []LeftOut
	}{
		"class": {func(_ *Series, o *Observation) bool { return o.class() == "coarse" }, func(l LeftOut) bool { return l.Point.class() == "coarse" },
			func(c *Calibration) []LeftOut { return c.LeaveOut(arith.BF16, false, nil) }},
		"zeros": {func(_ *Series, o *Observation) bool { return o.allZero() }, func(LeftOut) bool { return true },
			func(c *Calibration) []LeftOut { return c.LeaveOut(arith.BF16, true, nil) }},
		"card": {func(s *Series, _ *Observation) bool { return s.Card == card }, func(l LeftOut) bool { return l.Series.Card == card },
			func(c *Calibration) []LeftOut { return c.LeaveOutCard(arith.BF16, false, nil) }},
	} {
		before, after := test.of(c), test.of(changed(c, test.which))
		same, others := 0, 0
		for i, l := range before {
			if equal := l.Predicted == after[i].Predicted && l.HalfWidth == after[i].HalfWidth; test.same(l) && !equal {
				t.Errorf("%s: %s is predicted as %v and %v", name, l.Point.W, l.Predicted, after[i].Predicted)
			} else if equal {
				same++
			} else {
				others++
			}
		}
		if same < 8 || name != "zeros" && others < 50 {
			t.Errorf("%s: %d predictions stay the same, %d change", name, same, others)
		}
	}
}

// TestConstantFeatures: constant features get no coefficient. Without zeros, no fit can distinguish nonzero groups
// from the constant.
func TestConstantFeatures(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	for without, want := range map[string]bool{"": true, "zeros": false} {
		m, err := c.fit(kind{arith.BF16, false}, without, nil)
		if _, found := m.Coefficients[c.Names[stationaryNonzero]]; err != nil || found != want {
			t.Errorf("without %q: %v, %v", without, m.Coefficients, err)
		}
	}
}

// TestDoubts: a calibration from many points with small errors gives no doubts. Few points, large errors and unknown
// errors do.
func TestDoubts(t *testing.T) {
	h200, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	var few []string
	for _, d := range h200.Doubts() {
		if !strings.Contains(d, "weights from memory (decode): ") || !strings.Contains(d, " points are too few to fit this card alone") {
			t.Error(d)
		}
		few = append(few, d)
	}
	if len(few) != 2 { // FP16 and FP8 in decode
		t.Errorf("%q", few)
	}
	c := &Calibration{Series: h200.Series, Models: []Model{{Type: arith.BF16, Quality: Quality{Points: 50, Mean: 0.031}}, {Type: arith.BF16, Cold: true}}}
	have := c.Doubts()
	if len(have) != 2 || have[0] != "bf16 with weights on chip (prefill): the mean prediction error of 3.1 percentage points is large: check the measurements, or measure more kinds of patterns" ||
		!strings.HasPrefix(have[1], "bf16 with weights from memory (decode): the prediction errors are unknown") {
		t.Errorf("%q", have)
	}
}
