package probe

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
)

// TestBuiltInCalibration: the built-in calibration holds the recorded measurements, and features as today's code finds them in
// the operands. Features are found anew for the baseline of each series and for every seventh point, and today's code predicts these points. The calibration was
// made from these files, by lowtoggle calibrate --full and lowtoggle reproduce; readings of later days are left out.
func TestBuiltInCalibration(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	var all []*experiment.Series
	for _, folder := range []string{"probes", "reproduce"} {
		more, err := experiment.LoadFolder("../results/h200/" + folder)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
	}
	if len(all) != len(c.Series) {
		t.Fatalf("%d series are recorded, and the calibration has %d", len(all), len(c.Series))
	}
	without := cmp.Options{cmpopts.IgnoreFields(cost.Series{}, "Response"), cmpopts.IgnoreFields(cost.Baseline{}, "Features"),
		cmpopts.IgnoreFields(cost.Observation{}, "Features")}
	swapped, seen, mean, worst := swappedTypes(all), 0, 0.0, 0.0
	for i, s := range all {
		s.Sessions = slices.DeleteFunc(s.Sessions, func(later experiment.Session) bool {
			day, _, _ := strings.Cut(later.Date, "T")
			return day > c.Series[i].Date
		})
		found, points, err := ratios(s)
		if err != nil {
			t.Fatal(err)
		}
		calibrated := &c.Series[i]
		if diff := cmp.Diff(*calibrated, found, without); diff != "" {
			t.Errorf("%v: the calibration (-) is not the record (+):\n%s", s.Setup, diff)
			continue
		}
		var baseline float64 // joules
		for j := 0; j < len(points); j += 7 {
			x, w := patterns(points[j])
			if local := x.Local() && w.Local(); !local && s.K > 2048 {
				continue // all of a large matrix would be drawn
			}
			ox, ow, err := operands(t.Context(), s, points[j])
			if err != nil {
				t.Fatal(err)
			}
			have, err := c.Observe(t.Context(), s.Type.Operand(), productOf(s.Setup), swapped[s.Setup.Type], ox, ow)
			if err != nil {
				t.Fatal(err)
			}
			want := calibrated.Baseline.Features
			if j > 0 {
				want = calibrated.Points[j-1].Features
			}
			seen++
			for k, v := range have {
				if c.Names[k] == "weights_nonzero" && !s.Cold && math.IsNaN(want[k]) {
					continue // only models of weights from memory use it
				}
				const digits = 1e-4 // files have five
				if unknown := math.IsNaN(v) && math.IsNaN(want[k]); !unknown && !(math.Abs(v-want[k]) <= digits*math.Abs(want[k])) {
					t.Errorf("%v: %s: %s is %v, and %v in the calibration", s.Setup, points[j].Name(), c.Names[k], v, want[k])
				}
			}
			p, err := c.Predict(t.Context(), productOf(s.Setup), ox, ow)
			if err != nil {
				t.Fatal(err)
			}
			if j == 0 {
				baseline = *p.Joules
				continue
			}
			off := math.Abs(*p.Joules/baseline - calibrated.Points[j-1].Energy)
			mean, worst = mean+off, max(worst, off)
		}
	}
	mean /= float64(seen - len(all))
	t.Logf("%d points, predictions off by %.2f points on average, %.2f at worst", seen, 100*mean, 100*worst)
	if seen < 150 || !(mean < 0.0125) || !(worst < 0.1) {
		t.Errorf("%d points were seen, predictions are off by %.2f points on average, %.2f at worst", seen, 100*mean, 100*worst)
	}
}
