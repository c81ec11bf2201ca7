package cost_test

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

var limitsOfFact = regexp.MustCompile(`^facts\.(\S+) is \S+: it must be from (\S+) to (\S+)$`)

// factsWith returns facts with another number at a path such as "kernels.tile_tokens".
func factsWith(t *testing.T, facts cost.Facts, path string, v float64) (changed cost.Facts) {
	t.Helper()
	js, err := json.Marshal(facts)
	testmodel.OK(t, err)
	var tree map[string]any
	testmodel.OK(t, json.Unmarshal(js, &tree))
	names := strings.Split(path, ".")
	last, node := len(names)-1, tree
	for _, name := range names[:last] {
		node = node[name].(map[string]any)
	}
	node[names[last]] = v
	js, err = json.Marshal(tree)
	testmodel.OK(t, err)
	testmodel.OK(t, json.Unmarshal(js, &changed))
	return changed
}

// TestFactLimits: every number among a card's facts has the limits in testdata/factlimits.txt. The limits themselves
// are valid. A number outside is an error that names it.
func TestFactLimits(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	testmodel.OK(t, cost.ValidateFacts(c.Facts))
	var lines []string
	for _, v := range []float64{-1 << 30, 1 << 30} {
		testmodel.EachNumber(t, c.Facts, func(string, float64) float64 { return v }, func(what string, changed cost.Facts) {
			err := cost.ValidateFacts(changed)
			if err == nil {
				t.Errorf("%s is accepted", what)
				return
			}
			path, _, _ := strings.Cut(strings.TrimPrefix(what, "facts."), " = ")
			lines = append(lines, strings.TrimPrefix(err.Error(), "facts."))
			m := limitsOfFact.FindStringSubmatch(err.Error())
			if m == nil || m[1] != path {
				return // it contradicts another number
			}
			for end, text := range m[2:] {
				limit, err := strconv.ParseFloat(text, 64)
				testmodel.OK(t, err)
				beyond := math.Nextafter(limit, math.Inf(2*end-1))
				if strings.HasPrefix(path, "datapath") || strings.HasPrefix(path, "memory.") || strings.Contains(path, "tokens") { // integers
					beyond = limit + float64(2*end-1)
				}
				for value, fits := range map[float64]bool{limit: true, beyond: false} {
					err := cost.ValidateFacts(factsWith(t, c.Facts, path, value))
					if refused := err != nil && strings.HasPrefix(err.Error(), "facts."+path+" is "); refused == fits {
						t.Errorf("%s = %v: %v", path, value, err)
					}
				}
			}
		})
	}
	slices.Sort(lines)
	goldenfile.Same(t, "testdata/factlimits.txt", []byte(strings.Join(slices.Compact(lines), "\n")+"\n"))
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
