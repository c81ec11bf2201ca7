package cost

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestParseWorkload(t *testing.T) {
	const use = "; use prefill, decode, or shares such as prefill=30%,decode=70%"
	for _, c := range []struct {
		text string
		want Workload
		err  string
	}{
		{"prefill", Workload{1, 0}, ""},
		{"decode", Workload{0, 1}, ""},
		{"prefill=0.3,decode=0.7", Workload{0.3, 0.7}, ""},
		{" decode = 0.25 , prefill = 0.75", Workload{0.75, 0.25}, ""},
		{"decode=1", Workload{0, 1}, ""},
		{"prefill=30%,decode=70 %", Workload{0.3, 0.7}, ""},
		{"prefill=0.3,decode=70%", Workload{0.3, 0.7}, ""},
		{"prefill=30,decode=70", Workload{}, `workload "prefill=30,decode=70": shares sum to 100, not 1` + use},
		{"prefill=%,decode=1", Workload{}, `workload "prefill=%,decode=1": share of prefill is not a number: "%"` + use},
		{"prefill=1,decode=0", Workload{1, 0}, ""},
		{"", Workload{}, `unknown workload "": ` + use[2:]},
		{"train", Workload{}, `unknown workload "train": ` + use[2:]},
		{"prefill=0.3,decode", Workload{}, `workload "prefill=0.3,decode": decode has no share` + use},
		{"train=1", Workload{}, `workload "train=1": unknown phase "train"` + use},
		{"prefill=0.3", Workload{}, `workload "prefill=0.3": shares sum to 0.3, not 1` + use},
		{"prefill=x", Workload{}, `workload "prefill=x": share of prefill is not a number: "x"` + use},
		{"prefill=0.5,prefill=0.5", Workload{}, `workload "prefill=0.5,prefill=0.5": prefill is given twice` + use},
		{"prefill=2,decode=-1", Workload{}, `workload "prefill=2,decode=-1": a share is not between 0 and 1` + use},
		{"prefill=NaN,decode=1", Workload{}, `workload "prefill=NaN,decode=1": a share is not between 0 and 1` + use},
		{"prefill=Inf,decode=-Inf", Workload{}, `workload "prefill=Inf,decode=-Inf": a share is not between 0 and 1` + use},
	} {
		got, err := ParseWorkload(c.text)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("ParseWorkload(%q) = %v, %v\nwant %v, %s", c.text, got, err, c.want, c.err)
		}
	}
}

func TestWorkloadRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Float64Range(0, 1).Draw(t, "prefill")
		type options struct {
			Workload Workload
			Role     Role
		}
		in := options{Workload{p, 1 - p}, rapid.SampledFrom([]Role{Stationary, Streaming}).Draw(t, "role")}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out options
		if err := json.Unmarshal(text, &out); err != nil || in != out {
			t.Fatalf("%v → %s → %v, %v", in, text, out, err)
		}
	})
}

func TestDefaults(t *testing.T) {
	var r Role
	if r.String() != "stationary" || DefaultWorkload.String() != "prefill" {
		t.Errorf("defaults are %v and %v", r, DefaultWorkload)
	}
}

func TestWorkloadAndRoleErrors(t *testing.T) {
	if _, err := ParseRole("moving"); err == nil || err.Error() != `unknown role "moving": use stationary or streaming` {
		t.Error(err)
	}
	if _, err := Role(7).MarshalText(); err == nil || err.Error() != "no such role: Role(7)" {
		t.Error(err)
	}
	if _, err := (Workload{}).MarshalText(); err == nil || err.Error() != "workload prefill=0,decode=0: shares sum to 0, not 1" {
		t.Error(err)
	}
}
