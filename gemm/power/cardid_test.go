package power_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestID checks ids of cards. They must not change, because records and pages contain them.
func TestID(t *testing.T) {
	for _, test := range []struct{ name, uuid, id string }{
		{"NVIDIA H200", "GPU-d98800b1-0000-0000-0000-000000000000", "H200-1ed6"},
		{"NVIDIA A100-SXM4-80GB", "GPU-1", "A100-9207"},
		{"Tesla T4", "GPU-1", "T4-9207"},
		{"unknown", "GPU-1", "GPU-9207"},
		{"simulated card", "", ""},
	} {
		i := power.Info{Name: test.name, UUID: test.uuid}
		if got := i.ID(); got != test.id {
			t.Errorf("%s, %s: %s, want %s", test.name, test.uuid, got, test.id)
		}
	}
}

// TestIDInJSON: a record has the id. Records with and without it are read back without loss, even where unknown fields are refused.
func TestIDInJSON(t *testing.T) {
	limit := 700.0
	i := power.Info{Name: "NVIDIA H200", UUID: "GPU-1", PowerLimit: &limit}
	data, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	if fields["id"] != i.ID() || fields["uuid"] != "GPU-1" {
		t.Errorf("%s has not the id %s and the UUID", data, i.ID())
	}
	for what, record := range map[string]string{"today's": string(data), "an older": strings.Replace(string(data), `"id":"`+i.ID()+`",`, "", 1)} {
		var back power.Info
		strict := json.NewDecoder(strings.NewReader(record))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&back); err != nil {
			t.Errorf("%s record: %v", what, err)
		}
		if diff := cmp.Diff(i, back); diff != "" {
			t.Errorf("%s record: %s", what, diff)
		}
	}
}
