package cost

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestGrowthHolds: with its growth, the 95 % interval holds 95 % of the points, whatever they save.
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

// TestZerosCountOnce: weights that are all zero end several families of a series, and errors count them once.
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
