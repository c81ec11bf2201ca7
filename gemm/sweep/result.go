package sweep

import (
	"cmp"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// What intervals are.
const (
	Intervals95    = "95 %"
	IntervalsModel = "what is likely of a card, no 95 %: all settings may be off together"
)

// Result of a sweep, as it is written in JSON. Ratios are over the original at the reference. What is
// absent is not known.
type Result struct {
	GPU string `json:"gpu"`
	// Predicted says that nothing was measured.
	Predicted bool `json:"predicted,omitempty"`
	// Simulated figures of a simulated card mean nothing.
	Simulated bool   `json:"simulated,omitempty"`
	Workload  string `json:"workload,omitempty"`
	Before    string `json:"original"`
	After     string `json:"converted,omitempty"`
	// Reference is the power limit that was found set, or that of a calibration; Default is the card's.
	Reference float64 `json:"reference_watts"`
	Default   float64 `json:"default_watts,omitempty"`
	// Intervals says what every interval here is.
	Intervals string `json:"intervals"`
	// Points by power limit, then by clock.
	Points []Point `json:"points"`
	Best   []Best  `json:"best,omitempty"`
	// Drift is the widest ratio, less 1, between visits of the reference.
	Drift    float64  `json:"drift,omitempty"`
	Valid    bool     `json:"valid"`
	Invalid  []string `json:"invalid,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Stopped is empty where the sweep came to its end: "cancelled" or "failed".
	Stopped     string  `json:"stopped,omitempty"`
	Date        string  `json:"date,omitempty"`
	Command     string  `json:"command,omitempty"`
	Calibration string  `json:"calibration,omitempty"`
	Visits      []Visit `json:"visits,omitempty"` // in the order of time
}

// Point is a setting, and what a pass through all products takes there.
type Point struct {
	Setting
	Predicted bool `json:"predicted,omitempty"`
	// Extrapolated from the lowest setting that was measured.
	Extrapolated bool     `json:"extrapolated,omitempty"`
	Visits       int      `json:"visits,omitempty"`
	Original     Figures  `json:"original"`
	Converted    *Figures `json:"converted,omitempty"`
}

// Figures of products at a setting.
type Figures struct {
	Joules  float64  `json:"joules"`  // of one pass
	Seconds float64  `json:"seconds"` // of one pass
	Watts   float64  `json:"watts"`
	Clock   *float64 `json:"clock_mhz,omitempty"`
	// RelativeEnergy and RelativeTime are over the original at the reference.
	RelativeEnergy float64   `json:"relative_energy"`
	Interval       []float64 `json:"interval,omitempty"`
	RelativeTime   float64   `json:"relative_time"`
	TimeInterval   []float64 `json:"time_interval,omitempty"`
	// EDP, EDS and GainMinusLoss are explained at power's functions of these names.
	EDP           float64 `json:"relative_edp"`
	EDS           []EDS   `json:"relative_eds"`
	GainMinusLoss float64 `json:"energy_gain_minus_time_loss"`
}

// EDS is an energy-delay sum for one k.
type EDS struct {
	K     float64 `json:"k"`
	Value float64 `json:"value"`
}

// Best is the best setting by one metric: with a setting alone, with the conversion alone, with both. Of
// energy, edp and eds the lowest is the best, of energy_gain_minus_time_loss the highest.
type Best struct {
	Metric    string  `json:"metric"`
	K         float64 `json:"k,omitempty"` // of eds
	Setting   Choice  `json:"setting_alone"`
	Transform *Choice `json:"conversion_alone,omitempty"`
	Both      *Choice `json:"both,omitempty"`
}

// Choice is a setting, and the metric's value there. It was chosen by that value, which is not known for
// sure: the settings in AsGood cannot be told from it by their intervals.
type Choice struct {
	Setting
	Value  float64   `json:"value"`
	AsGood []Setting `json:"as_good,omitempty"`
}

// IsReference says whether all is relative to the original at a setting.
func (r *Result) IsReference(s Setting) bool { return s == Setting{Cap: r.Reference} }

// reference point; nil where it was not measured.
func (r *Result) reference() *Point {
	i := slices.IndexFunc(r.Points, func(p Point) bool { return r.IsReference(p.Setting) })
	if i < 0 {
		return nil
	}
	return &r.Points[i]
}

// Finish puts the points in order, and works out ratios, metrics, intervals of what was measured, and the best
// settings, from their joules and seconds. Intervals of predictions are there already.
func (r *Result) Finish(k []float64) {
	slices.SortFunc(r.Points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Clock, b.Clock), cmp.Compare(a.Cap, b.Cap))
	})
	at := r.reference()
	if at == nil {
		return
	}
	base := at.Original
	for i := range r.Points {
		for _, f := range []*Figures{&r.Points[i].Original, r.Points[i].Converted} {
			if f != nil {
				f.relate(base.Joules, base.Seconds, k)
			}
		}
	}
	r.errors()
	r.choose(k)
}

// relate to the original at the reference.
func (f *Figures) relate(joules, seconds float64, k []float64) {
	e, t := f.Joules/joules, f.Seconds/seconds
	f.RelativeEnergy, f.RelativeTime = e, t
	f.EDP, f.GainMinusLoss, f.EDS = power.EDP(e, t), power.GainMinusLoss(e, t), nil
	for _, k := range k {
		f.EDS = append(f.EDS, EDS{k, power.EDS(e, t, k)})
	}
}
