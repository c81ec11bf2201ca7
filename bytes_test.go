package main

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/recordfile"
)

// bytesFile records which kinds of processors and builds gave the frozen bytes; bench/bytes.sh writes it.
const bytesFile = "bench/results/bytes/variants.json"

// sameBytes lists which variants gave the bytes of a conversion.
type sameBytes struct {
	Weights   string   `json:"weights"` // SHA-256 at the time of the record
	Plan      string   `json:"plan"`
	Equal     []string `json:"equal"`
	OtherPlan []string `json:"other_plan,omitempty"` // the weights were equal; the plan was not, or has changed since the run
	Different []string `json:"different,omitempty"`  // the weights were not equal
}

// recordBytes adds to the record whether a variant gave the frozen bytes of a conversion.
func recordBytes(t *testing.T, variant string, c conversion, have, want map[string]string) {
	t.Helper()
	record := map[string]sameBytes{}
	if err := recordfile.Read(bytesFile, &record); err != nil {
		t.Fatal(err)
	}
	plan, data := "plan: "+c.String(), "weights: "+c.String()
	r := record[c.String()]
	switch {
	case r.Weights != want[data]:
		r = sameBytes{Weights: want[data], Plan: want[plan]}
	case r.Plan != want[plan]: // the weights were equal, and still are
		r.Plan, r.OtherPlan, r.Equal = want[plan], append(r.OtherPlan, r.Equal...), nil
	}
	of := func(v string) bool { return v == variant }
	list := &r.Equal
	switch {
	case have[data] != want[data]:
		list = &r.Different
	case have[plan] != want[plan]:
		list = &r.OtherPlan
	}
	for _, l := range []*[]string{&r.Equal, &r.OtherPlan, &r.Different} {
		*l = slices.DeleteFunc(*l, of)
	}
	*list = append(*list, variant)
	slices.Sort(*list)
	record[c.String()] = r
	if err := recordfile.Write(bytesFile, record); err != nil {
		t.Fatal(err)
	}
}

// TestBytesRecord checks that no recorded variant gave other weights, and that the record has only frozen conversions.
func TestBytesRecord(t *testing.T) {
	record := map[string]sameBytes{}
	if err := recordfile.Read(bytesFile, &record); err != nil {
		t.Fatal(err)
	}
	if len(record) == 0 {
		t.Error("nothing is recorded: run bench/bytes.sh")
	}
	digests := frozenDigests(t)
	for name, r := range record {
		if len(r.Different) > 0 {
			t.Errorf("%s has other weights on %q", name, r.Different)
		}
		if digests["weights: "+name] == "" {
			t.Errorf("%s is recorded and not frozen", name)
		}
	}
}
