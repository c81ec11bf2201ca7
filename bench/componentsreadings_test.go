package bench

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// elsewhere is a recorded reading with its predictions. Its card is not the card of the built-in components.
type elsewhere struct {
	component.Prediction
	card     string // its id
	baseline bool   // both operands are random
	session  int    // readings of one session have the same number
}

// otherCards returns the recorded readings of products in the types of a model, in the order of the files.
func otherCards(t *testing.T, m *component.Model) (list []elsewhere) {
	t.Helper()
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	type point struct{ x, w string }
	type series struct {
		cost.Product
		change string
	}
	type activity struct{ operands, random *cost.Features }
	known := map[series]map[point]activity{} // series of one product may be several
	for i := range c.Series {
		s := &c.Series[i]
		key, random := series{s.Product, s.Change}, s.Baseline.Features
		if known[key] == nil {
			known[key] = map[point]activity{}
		}
		known[key][point{s.Baseline.X, s.Baseline.W}] = activity{random, random}
		for _, o := range s.Points {
			known[key][point{o.X, o.W}] = activity{o.Features, random}
		}
	}
	measured := map[string]bool{}
	for _, typ := range m.Types() {
		measured[typ.String()] = true
	}
	sessions := 0
	for _, folder := range []string{"probes", "reproduce"} {
		all, err := experiment.LoadFolder(recorded + folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			key := series{cost.Product{Type: s.Setup.Type, M: s.M, N: s.N, K: s.K, Role: s.Role, Cold: s.Cold}, string(s.Change)}
			if !measured[s.Setup.Type.String()] {
				continue
			}
			for _, session := range s.Sessions {
				sessions++
				points := map[string]experiment.Measured{}
				for _, p := range session.Points {
					points[p.Name()] = p
				}
				for _, r := range session.Readings {
					p := points[r.Load]
					if r.Baseline {
						p = points[s.Baseline.Name()]
					}
					if p.Seed != s.Baseline.Seed { // the features are of operands from one seed
						continue
					}
					x, w := p.X, p.W
					if p.Scaled != nil {
						x, w = p.Scaled.X, p.Scaled.W
					}
					f, ok := known[key][point{x.String(), w.String()}]
					if !ok { // measured after the calibration was fitted; the page says how many readings there are
						continue
					}
					if r.SMClock == nil || r.Temperature == nil {
						t.Fatalf("%v: %s by %s has no clock or temperature", s.Setup, x, w)
					}
					g := measure.ComponentGEMM(gemm.Problem{M: s.M, N: s.N, K: s.K, Type: s.Setup.Type}, s.Cold, session.Kernel, session.Platform, &m.Facts)
					g.Bits, g.Moved = c.TogglingOf(g.Type, f.operands, f.random)
					if _, random := m.Facts.Random(g.Type); s.Change == experiment.Weights && !s.Cold {
						g.Moved = (g.Moved + random) / 2 // x is random
					}
					k, err := g.Kernel(s.Setup.String(), &m.Facts)
					if err != nil {
						t.Fatal(err)
					}
					k.Seconds, k.Clock, k.Temperature = r.Seconds, *r.SMClock, *r.Temperature
					list = append(list, elsewhere{m.Compare(component.Reading{Kernel: k, Watts: r.Watts, MemoryWatts: r.MemoryWatts, Capped: r.CappedShare}),
						session.Card.ID(), r.Baseline, sessions})
				}
			}
		}
	}
	return list
}
