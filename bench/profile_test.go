package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// TestProfilesAgree holds two measurements of one product on one H200 against each other, cell by cell, from 50 ms
// after the start to the end of the work.
func TestProfilesAgree(t *testing.T) {
	for _, test := range []struct {
		name    string
		largest float64 // from 50 ms on
		later   float64 // from 75 ms on
	}{
		{"8192", 0.03, 0.03},
		// In 25 ms of the 2 s it is above 3 %: there the card first lowers its clock, at another moment in each run.
		{"2048", 0.06, 0.03},
	} {
		a, b := measuredProfile(t, "profile-"+test.name+"-1.json"), measuredProfile(t, "profile-"+test.name+"-2.json")
		const mean, finest = 0.01, 5 * time.Millisecond
		end := min(a.End(), b.End()) - 2*a.Curve.Step
		d := profile.Agreement(a.Curve, b.Curve, 50*time.Millisecond, end)
		later := profile.Agreement(a.Curve, b.Curve, 75*time.Millisecond, end)
		t.Logf("%s³: at most %.2f %% at %v, later than 75 ms %.2f %% at %v, on the mean %.2f %%", test.name, 100*d.Largest, d.At, 100*later.Largest, later.At, 100*d.Mean)
		if d.Largest > test.largest || later.Largest > test.later || d.Mean > mean {
			t.Errorf("%s³ differs by more than that", test.name)
		}
		for _, p := range []*profile.Profile{a, b} {
			if p.Curve.Law == nil || p.Curve.Step > finest {
				t.Errorf("%s³: what goes with the pace is resolved to %v", test.name, p.Curve.Step)
			}
		}
	}
}

func measuredProfile(t *testing.T, name string) *profile.Profile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("results", "h200", name))
	if err != nil {
		t.Fatal(err)
	}
	var r profile.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return &r.Profiles[0]
}
