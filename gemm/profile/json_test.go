package profile

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// TestJSON: times come back to the nanosecond, and every key says what it is in.
func TestJSON(t *testing.T) {
	o := quick
	o.Runs, o.Readings = 10, true
	r := taken(t, measure.Simulated(plain()), o, product("still", false), product("toggling", true))
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read Result
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	again := read
	again.Profiles = slices.Clone(read.Profiles)
	if err := Again(context.Background(), &again, o); err != nil {
		t.Fatal(err)
	}
	for i, p := range again.Profiles {
		if was := r.Profiles[i]; !reflect.DeepEqual(p.Curve.Watts, was.Curve.Watts) || !reflect.DeepEqual(p.Milestones, was.Milestones) || !reflect.DeepEqual(p.Steady, was.Steady) {
			t.Errorf("again profile %d is not the same", i+1)
		}
	}
	for i, p := range r.Profiles {
		p.Curve.resamples, p.Curve.wide = nil, 0
		for what, pair := range map[string][2]any{
			"curve": {p.Curve, read.Profiles[i].Curve}, "legs": {p.Legs, read.Profiles[i].Legs},
			"milestones": {p.Milestones, read.Profiles[i].Milestones}, "steady": {p.Steady, read.Profiles[i].Steady},
			"sensors": {p.Sensors, read.Profiles[i].Sensors}, "states": {p.States, read.Profiles[i].States},
			"inside": {p.Inside, read.Profiles[i].Inside}, "readings": {p.Readings, read.Profiles[i].Readings},
			"paces": {p.Paces, read.Profiles[i].Paces},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s: %+v, read %+v", what, pair[0], pair[1])
			}
		}
	}
	if !reflect.DeepEqual(r.After, read.After) || !reflect.DeepEqual(r.Products, read.Products) {
		t.Errorf("%+v\n%+v, read\n%+v\n%+v", r.After, r.Products, read.After, read.Products)
	}
	if s := read.Sync; s.Delay != r.Sync.Delay || s.Residual != r.Sync.Residual || s.Launch != r.Sync.Launch {
		t.Errorf("%+v, read %+v", r.Sync, s)
	}
	if bad := regexp.MustCompile(`"([A-Z][A-Za-z]*|at|over|begin|end|start|step|delay|window|resolution|density|above)":`).FindAll(text, -1); bad != nil {
		t.Errorf("keys %s", bad)
	}
}
