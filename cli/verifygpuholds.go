package cli

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// holds says whether nothing speaks against the totals, and they are as precise as was asked. Of the rows for
// layers, one in twenty is expected to miss its null.
func (e *measuredEnergy) holds() bool { return e.complete() && len(e.Invalid) == 0 }

func (t *energyTogether) holds() bool {
	return !slices.ContainsFunc(t.Cards, func(c cardEnergy) bool { return !c.complete() }) && len(t.Invalid) == 0
}

// complete says whether all totals are there, and as precise as was asked.
func (e *measuredEnergy) complete() bool {
	short := func(r *measure.Result) bool { return e.strict && r.Stopped != stoppedByPrecision }
	return !slices.ContainsFunc(e.Phases, func(p measuredPhase) bool {
		switch t := p.Total; {
		case t == nil:
			return true
		case t.Identical:
			return false
		case t.Run == nil: // put together from rows, each of which was to reach the precision
			return slices.ContainsFunc(p.Layers, func(r measuredRow) bool { return short(r.Run) })
		default:
			return short(t.Run)
		}
	})
}

// runs of the totals, named after their phases, behind a prefix.
func (e *measuredEnergy) runs(prefix string) (names []string, runs []*measure.Result) {
	for _, p := range e.Phases {
		if t := p.Total; t != nil && t.Run != nil {
			names, runs = append(names, prefix+p.Phase), append(runs, t.Run)
		}
	}
	return names, runs
}

// runs of all cards' totals.
func (t *energyTogether) runs() (names []string, runs []*measure.Result) {
	for _, c := range t.Cards {
		own, of := c.runs(c.Name + ", ")
		names, runs = append(names, own...), append(runs, of...)
	}
	return names, runs
}
