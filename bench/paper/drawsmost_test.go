package paper

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestDrawsMost: T7 compares power at one clock and on one card, in setups that are otherwise alike.
func TestDrawsMost(t *testing.T) {
	// read replaces the readings of all points.
	read := func(s experiment.Setup, all ...Reading) []Result {
		list := invented(s, uniform)
		for i := range list {
			list[i].Readings = all
		}
		return list
	}
	at := func(card string, watts, clock float64) Reading { return Reading{card, 100, watts, clock} }
	fp32, cuda, int8, bf16 := Setups()[1], Setups()[2], Setups()[3], Setups()[4]
	rest := func(card string) []Result {
		return slices.Concat(read(cuda, at(card, 400, 2000)), read(int8, at(card, 300, 2000)), read(bf16, at(card, 900, 2000)))
	}
	for name, c := range map[string]struct {
		fp16, others []Result
		want, where  string
		power        float64
	}{
		"more":                     {read(fp16(), at("a", 600, 2000)), read(fp32, at("a", 500, 2000)), "holds", "at 2000 MHz: fp16 600 W ± 0.1 %; next fp32 500 W ± 0.0 %", 0.2},
		"less":                     {read(fp16(), at("a", 400, 2000)), read(fp32, at("a", 500, 2000)), "does not hold", "next fp32", -0.2},
		"hardly more":              {read(fp16(), at("a", 500.5, 2000)), read(fp32, at("a", 500, 2000)), "undecided", "", 0.001},
		"hardly less":              {read(fp16(), at("a", 499.4, 2000)), read(fp32, at("a", 500, 2000)), "undecided", "", -0.0012},
		"more at a lower clock":    {read(fp16(), at("a", 500, 1600)), read(fp32, at("a", 550, 2000)), "holds", "fp16 600…881 W", 600./550 - 1},
		"perhaps at a lower clock": {read(fp16(), at("a", 500, 1600)), read(fp32, at("a", 650, 2000)), "undecided", "", 600./650 - 1},
		"less at a lower clock":    {read(fp16(), at("a", 300, 1600)), read(fp32, at("a", 500, 2000)), "does not hold", "", 350./500 - 1},
		"on another card":          {read(fp16(), at("b", 600, 2000)), read(fp32, at("a", 500, 2000)), "undecided", "not on one card", 0.2},
		"on two cards":             {read(fp16(), at("b", 900, 2000), at("a", 600, 2000)), read(fp32, at("a", 500, 2000), at("c", 400, 2000)), "holds", "fp16 600 W ± 0.2 %; next fp32 500 W", 0.2},
	} {
		for i := range c.others {
			c.others[i].HalfWidth = 0.00001 // so that the type's own interval decides
		}
		for i := range c.fp16 {
			c.fp16[i].HalfWidth = 0.005 // of a point; T7 takes the mean of many
		}
		j := assessed(t, "T7", slices.Concat(c.fp16, c.others, rest("a")))
		if e := j.Effects[0]; j.Verdict != c.want || !strings.Contains(e.Where, c.where) || math.Abs(e.Power-c.power) > 1e-4 {
			t.Errorf("%s: %s, %+v", name, j.Verdict, e)
		}
	}
	fp16s := read(fp16(), at("a", 600, 2000))
	if j := assessed(t, "T7", fp16s); j.Verdict != "not measured" {
		t.Errorf("alone: %s", j.Verdict)
	}
	if j := assessed(t, "T7", slices.Concat(fp16s, read(fp32, at("a", 500, 2000)))); j.Verdict != "undecided" {
		t.Errorf("without two of the types: %s", j.Verdict)
	}
	if j := assessed(t, "T7", slices.Concat(fp16s, read(fp32, at("a", math.NaN(), 2000)), rest("a"))); j.Verdict != "not measured" {
		t.Errorf("without power: %s", j.Verdict)
	}
	other := fp32
	other.M, other.N, other.K = 4096, 4096, 4096
	if e := assessed(t, "T7", slices.Concat(fp16s, read(fp32, at("a", 500, 2000)), rest("a"), read(other, at("a", 900, 2000)))).Effects[0]; math.Abs(e.Power-0.2) > 1e-9 {
		t.Errorf("another size counts: %+v", e)
	}
	// The card with most places counts.
	two := slices.Concat(fp16s, read(fp32, at("a", 500, 2000)), rest("a"))
	for i := range two {
		if two[i].Experiment == "4a" && two[i].X == 50 {
			two[i].Readings = append(two[i].Readings, at("z", 700, 2000))
		}
	}
	if e := assessed(t, "T7", two).Effects[0]; math.Abs(e.Power-0.2) > 1e-9 {
		t.Errorf("a card with fewer places counts: %+v", e)
	}
	// Without intervals nothing is decided.
	open := slices.Concat(fp16s, read(fp32, at("a", 500, 2000)), rest("a"))
	for i := range open {
		open[i].HalfWidth = math.NaN()
	}
	if j := assessed(t, "T7", open); j.Verdict != "undecided" || !strings.HasSuffix(j.Effects[0].Where, " MHz: fp16 600 W; next fp32 500 W") {
		t.Errorf("without an interval: %s, %v", j.Verdict, j.Effects)
	}
	// Only places that all types have count.
	some := slices.DeleteFunc(read(fp16(), at("a", 600, 2000)), func(r Result) bool { return r.X > 4 })
	for i := range some {
		if some[i].X == 4 && some[i].Setup.Type == arith.FP16 {
			some[i].Readings = []Reading{at("a", 900, 2000)}
		}
	}
	others := slices.DeleteFunc(read(fp32, at("a", 500, 2000)), func(r Result) bool { return r.Experiment[0] == '4' && r.X > 0 })
	if e := assessed(t, "T7", slices.Concat(some, others, rest("a"))).Effects[0]; math.Abs(e.Power-0.2) > 1e-9 {
		t.Errorf("places that one type has not: %+v", e)
	}
}
