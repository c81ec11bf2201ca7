package transform

import (
	"errors"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform/pass"
)

// Searches that may find something else keep it apart; those for several budgets do not.
func TestSearchKey(t *testing.T) {
	calibration, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	passes, err := ParsePasses("trellis,compensate")
	if err != nil {
		t.Fatal(err)
	}
	budget := func(v float64) pass.Budget { return pass.Budget{MaxLoss: &v} }
	o := Options{Passes: passes, Workload: cost.DefaultWorkload, Cost: calibration, Budget: budget(0.001)}
	with := func(change func(*Options)) *Options {
		other := o
		change(&other)
		return &other
	}
	seen := map[string]string{}
	apart := func(what string, tokens Tokens, o *Options) {
		key, err := tokens.searchKey(o)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[key]; twice {
			t.Errorf("%s and %s share what they find", what, other)
		}
		seen[key] = what
	}
	tokens := Tokens{key: "model and tokens"}
	apart("one search", tokens, &o)
	apart("other tokens", Tokens{key: "others"}, &o)
	apart("another family", Tokens{key: tokens.key, family: "another"}, &o)
	apart("other passes", tokens, with(func(o *Options) { o.Passes = o.Passes[1:] }))
	apart("another workload", tokens, with(func(o *Options) { o.Workload = cost.Workload{Decode: 1} }))
	apart("another role", tokens, with(func(o *Options) { o.Role = cost.Streaming }))
	apart("another calibration", tokens, with(func(o *Options) { o.Cost = &cost.Calibration{Card: "another"} }))
	apart("another version", tokens, with(func(o *Options) { o.Version = "another" }))
	one, err := tokens.searchKey(&o)
	more, err2 := tokens.searchKey(with(func(o *Options) { o.Budget, o.Workers = budget(0.01), 7 }))
	if one != more || errors.Join(err, err2) != nil {
		t.Error("another budget, or number of workers, shares nothing")
	}
}
