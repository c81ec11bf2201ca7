package sweep

import "github.com/lowtoggle/lowtoggle/gemm/power"

const gainMinusLoss = "energy_gain_minus_time_loss"

// metric combines energy and time, both relative to the original at the reference.
type metric struct {
	name string
	k    float64 // parameter k of eds
	of   func(energy, time float64) float64
}

func metrics(k []float64) []metric {
	all := []metric{{"energy", 0, func(energy, _ float64) float64 { return energy }}, {"edp", 0, power.EDP}}
	for _, k := range k {
		all = append(all, metric{"eds", k, func(energy, time float64) float64 { return power.EDS(energy, time, k) }})
	}
	return append(all, metric{gainMinusLoss, 0, power.GainMinusLoss})
}

// cost returns a value that rises with energy and time. The setting with the lowest cost is best.
func (m metric) cost(energy, time float64) float64 {
	if m.name == gainMinusLoss {
		return -m.of(energy, time)
	}
	return m.of(energy, time)
}

// choose finds the best setting by every metric. With a single setting there is nothing to choose.
func (r *Result) choose(k []float64) {
	if r.Best = nil; len(r.Points) < 2 {
		return
	}
	original := func(p *Point) *Figures { return &p.Original }
	converted := func(p *Point) *Figures { return p.Converted }
	for _, m := range metrics(k) {
		b := Best{Metric: m.name, K: m.k, Setting: *r.best(m, original), Both: r.best(m, converted)}
		if f := r.reference().Converted; f != nil {
			b.Transform = &Choice{Setting: Setting{Cap: r.Reference}, Value: m.of(f.RelativeEnergy, f.RelativeTime)}
		}
		r.Best = append(r.Best, b)
	}
}

// best returns the setting with the lowest cost, or the lowest such setting if several are equal. It returns nil
// without figures.
func (r *Result) best(m metric, figures func(*Point) *Figures) *Choice {
	var best *Point
	cost := func(p *Point) float64 { f := figures(p); return m.cost(f.RelativeEnergy, f.RelativeTime) }
	for i := range r.Points {
		if p := &r.Points[i]; figures(p) != nil && (best == nil || cost(p) < cost(best)) {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	f := figures(best)
	c := &Choice{Setting: best.Setting, Value: m.of(f.RelativeEnergy, f.RelativeTime)}
	if f.Interval == nil || f.TimeInterval == nil {
		return c
	}
	for i := range r.Points {
		p := &r.Points[i]
		if o := figures(p); p != best && o != nil && o.Interval != nil && o.TimeInterval != nil &&
			m.cost(o.Interval[0], o.TimeInterval[0]) <= m.cost(f.Interval[1], f.TimeInterval[1]) {
			c.AsGood = append(c.AsGood, p.Setting)
		}
	}
	return c
}
