package cost_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// TestFactLimits: every number among a card's facts has the limits in testdata/factlimits.txt. The limits themselves
// are valid. A number outside is an error that names it.
func TestFactLimits(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	whole := func(path string) bool {
		return strings.HasPrefix(path, "datapath") || strings.HasPrefix(path, "memory.") || strings.Contains(path, "tokens")
	}
	lines := testmodel.FactLimits(t, c.Facts, whole, cost.ValidateFacts)
	goldenfile.Same(t, "testdata/factlimits.txt", []byte(strings.Join(lines, "\n")+"\n"))
}

// TestRivalsFollowTheirFeatures: the simple models predict the built-in card's energies roughly, and worse than the model of all features.
func TestRivalsFollowTheirFeatures(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	m := c.Models[0]
	for _, r := range cost.Rivals {
		list := c.LeaveOutBy(r, m.Type, m.Cold)
		var off float64
		for _, l := range list {
			if l.Predicted < 0.1 || l.Predicted > 1.6 {
				t.Errorf("%s: %+v", r.Name, l)
			}
			off += math.Abs(l.Error()) / float64(len(list))
		}
		if len(list) < 100 || off > 0.08 || off < m.Quality.Mean {
			t.Errorf("%s: %d points, wrong by %.4f on average; all features by %.4f", r.Name, len(list), off, m.Quality.Mean)
		}
	}
}
