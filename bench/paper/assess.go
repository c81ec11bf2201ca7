package paper

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Assessment is a takeaway compared with measurements.
type Assessment struct {
	Takeaway
	Verdict string   `json:"verdict"`
	Effects []Effect `json:"effects"` // in each setup that was measured
}

// Assess compares every takeaway with the results. The results may be of any setups and incomplete.
func Assess(results []Result) (list []Assessment) {
	all := bySetup(results)
	for _, t := range takeaways {
		effects := append([]Effect{}, t.effects(all)...) // not nil, so that JSON has []
		list = append(list, Assessment{t, verdict(effects), effects})
	}
	return list
}

// verdict returns the outcome over all setups in words, such as "holds except in fp32-2048-both; undecided in 3 of 9 series".
func verdict(effects []Effect) string {
	names := map[Outcome][]string{}
	for _, e := range effects {
		names[e.Outcome] = append(names[e.Outcome], e.Setup.String())
	}
	hold, fail, open := names[Holds], names[Fails], names[Open]
	said := ""
	switch {
	case len(effects) == 0:
		return "not measured"
	case hold == nil && fail == nil:
		return string(Open)
	case fail == nil:
		said = string(Holds)
	case hold == nil:
		said = string(Fails)
	case len(fail) < len(hold):
		said = "holds except in " + strings.Join(fail, ", ")
	default:
		said = "holds only in " + strings.Join(hold, ", ")
	}
	if open != nil {
		said += fmt.Sprintf("; undecided in %d of %d series", len(open), len(effects))
	}
	return said
}

// Overall returns the range of the effects on energy as text, or on power if the takeaway is about power; "–" if
// nothing was measured.
func (j Assessment) Overall() string {
	var energy, power []float64
	for _, e := range j.Effects {
		power = append(power, e.Power)
		if !math.IsNaN(e.Energy) {
			energy = append(energy, e.Energy)
		}
	}
	list, what := energy, ""
	if energy == nil {
		list, what = power, "power "
	}
	if list == nil {
		return unknown
	}
	low, high := percent(slices.Min(list)), percent(slices.Max(list))
	if low == high {
		return what + low + " %"
	}
	return fmt.Sprintf("%s%s … %s %%", what, low, high)
}
