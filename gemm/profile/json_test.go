package profile

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// TestJSON: times are read back to the nanosecond, and every key names its unit.
func TestJSON(t *testing.T) {
	o := quicker
	o.Runs, o.Readings = 7, true
	r := measured(t, measure.Simulated(plain()), o, product("still", false), product("toggling", true))
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
	if err := Recompute(context.Background(), &again, o); err != nil {
		t.Fatal(err)
	}
	for i, p := range again.Profiles {
		if was := r.Profiles[i]; !reflect.DeepEqual(p.Trace.Watts, was.Trace.Watts) || !reflect.DeepEqual(p.Milestones, was.Milestones) || !reflect.DeepEqual(p.Steady, was.Steady) {
			t.Errorf("again profile %d is not the same", i+1)
		}
	}
	for i, p := range r.Profiles {
		for what, pair := range map[string][2]any{
			"trace": {recorded(p.Trace), recorded(read.Profiles[i].Trace)}, "legs": {p.Segments, read.Profiles[i].Segments},
			"milestones": {p.Milestones, read.Profiles[i].Milestones}, "steady": {p.Steady, read.Profiles[i].Steady},
			"sensors": {p.Sensors, read.Profiles[i].Sensors}, "states": {p.States, read.Profiles[i].States},
			"inside": {p.Execution, read.Profiles[i].Execution}, "readings": {p.Readings, read.Profiles[i].Readings},
			"paces": {p.Timelines, read.Profiles[i].Timelines},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s: %+v, read %+v", what, pair[0], pair[1])
			}
		}
	}
	if !reflect.DeepEqual(r.Interleaved, read.Interleaved) || !reflect.DeepEqual(r.Products, read.Products) {
		t.Errorf("%+v\n%+v, read\n%+v\n%+v", r.Interleaved, r.Products, read.Interleaved, read.Products)
	}
	if s := read.Sync; s.Delay != r.Sync.Delay || s.Residual != r.Sync.Residual || s.Launch != r.Sync.Launch {
		t.Errorf("%+v, read %+v", r.Sync, s)
	}
	if bad := regexp.MustCompile(`"([A-Z][A-Za-z]*|at|over|begin|end|start|step|delay|window|resolution|density|above)":`).FindAll(text, -1); bad != nil {
		t.Errorf("keys %s", bad)
	}
}

// recorded returns the part of a trace that a file contains.
func recorded(t *stitch.Trace) stitch.Trace {
	return stitch.Trace{Start: t.Start, Step: t.Step, Watts: t.Watts, Low: t.Low, High: t.High, Law: t.Law, Resolution: t.Resolution}
}
