package sweep

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Values of [Result].Intervals.
const (
	Intervals95    = "95 %"
	IntervalsModel = "range of likely values, not a 95 % interval: the errors of all settings may have the same sign"
)

// Result is the result of a sweep. Ratios are relative to the original at the reference. An absent field is unknown.
type Result struct {
	GPU    string `json:"gpu"`
	CardID string `json:"card_id,omitempty"` // as in [power.Info]; absent from predictions
	// Predicted is true if all figures are predictions.
	Predicted bool `json:"predicted,omitempty"`
	// Simulated is true for figures of a simulated card, which mean nothing.
	Simulated bool   `json:"simulated,omitempty"`
	Workload  string `json:"workload,omitempty"`
	Before    string `json:"original"`
	After     string `json:"converted,omitempty"`
	// Reference is the power limit that was found set, or the calibration's. Default is the card's.
	Reference float64 `json:"reference_watts"`
	Default   float64 `json:"default_watts,omitempty"`
	// Intervals is the kind of all intervals.
	Intervals string `json:"intervals"`
	// Points are sorted by power limit, then by clock.
	Points []Point `json:"points"`
	Best   []Best  `json:"best,omitempty"`
	// Drift is the largest ratio, less 1, between visits of the reference.
	Drift    float64  `json:"drift,omitempty"`
	Valid    bool     `json:"valid"`
	Invalid  []string `json:"invalid,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Stopped is "cancelled" or "failed", or empty if the sweep was completed.
	Stopped     string  `json:"stopped,omitempty"`
	Date        string  `json:"date,omitempty"`
	Command     string  `json:"command,omitempty"`
	Calibration string  `json:"calibration,omitempty"`
	Visits      []Visit `json:"visits,omitempty"` // in the order of time
}

// Point is a setting with the figures of one pass through all products.
type Point struct {
	Setting
	Predicted bool `json:"predicted,omitempty"`
	// Extrapolated is true for figures that are extrapolated from the lowest measured setting.
	Extrapolated bool     `json:"extrapolated,omitempty"`
	Visits       int      `json:"visits,omitempty"`
	Original     Figures  `json:"original"`
	Converted    *Figures `json:"converted,omitempty"`
}

// Figures are the figures of products at a setting.
type Figures struct {
	Joules  float64  `json:"joules"`  // of one pass
	Seconds float64  `json:"seconds"` // of one pass
	Watts   float64  `json:"watts"`
	Clock   *float64 `json:"clock_mhz,omitempty"`
	// RelativeEnergy and RelativeTime are relative to the original at the reference.
	RelativeEnergy float64   `json:"relative_energy"`
	Interval       []float64 `json:"interval,omitempty"`
	RelativeTime   float64   `json:"relative_time"`
	TimeInterval   []float64 `json:"time_interval,omitempty"`
	// EDP, EDS and GainMinusLoss are defined in package power.
	EDP           float64 `json:"relative_edp"`
	EDS           []EDS   `json:"relative_eds"`
	GainMinusLoss float64 `json:"energy_gain_minus_time_loss"`
}

// EDS is an energy-delay sum for one k.
type EDS struct {
	K     float64 `json:"k"`
	Value float64 `json:"value"`
}

// Best is the best setting by one metric: by the setting alone, by the conversion alone, and by both. The lowest energy,
// edp and eds are best, and the highest energy_gain_minus_time_loss.
type Best struct {
	Metric    string  `json:"metric"`
	K         float64 `json:"k,omitempty"` // of eds
	Setting   Choice  `json:"setting_alone"`
	Transform *Choice `json:"conversion_alone,omitempty"`
	Both      *Choice `json:"both,omitempty"`
}

// Choice is a setting with its value of a metric. The settings in AsGood do not differ from it by more than their intervals.
type Choice struct {
	Setting
	Value  float64   `json:"value"`
	AsGood []Setting `json:"as_good,omitempty"`
}

// IsReference reports whether a setting is the reference.
func (r *Result) IsReference(s Setting) bool { return s == Setting{Cap: r.Reference} }

// OutOfTime returns the settings at which a visit's time ended before its intervals were as narrow as asked.
func (r *Result) OutOfTime() (at []Setting) {
	for _, v := range r.Visits {
		if v.Run.Stopped == power.StoppedTime && !slices.Contains(at, v.Setting) {
			at = append(at, v.Setting)
		}
	}
	return at
}

// reference returns the reference's point; nil if it was not measured.
func (r *Result) reference() *Point {
	i := slices.IndexFunc(r.Points, func(p Point) bool { return r.IsReference(p.Setting) })
	if i < 0 {
		return nil
	}
	return &r.Points[i]
}

// Finish sorts the points and computes ratios, metrics, intervals of measurements and the best settings from their joules
// and seconds. Predictions have their intervals already.
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
	r.intervals()
	r.choose(k)
}

// relate computes the ratios to the original at the reference.
func (f *Figures) relate(joules, seconds float64, k []float64) {
	e, t := f.Joules/joules, f.Seconds/seconds
	f.RelativeEnergy, f.RelativeTime = e, t
	f.EDP, f.GainMinusLoss, f.EDS = power.EDP(e, t), power.GainMinusLoss(e, t), nil
	for _, k := range k {
		f.EDS = append(f.EDS, EDS{k, power.EDS(e, t, k)})
	}
}

// newResult makes the result of visits. A setting that was visited more than once has the mean of its visits.
func newResult(p Plan, visits []Visit, k []float64) *Result {
	r := &Result{Reference: p.Reference.Cap, Default: p.Default, Intervals: Intervals95, Valid: true, Visits: visits, Points: []Point{}}
	at := map[Setting][]Visit{}
	for _, v := range visits {
		at[v.Setting] = append(at[v.Setting], v)
	}
	for s, all := range at {
		point := Point{Setting: s, Visits: len(all)}
		point.Original = meanOf(all, func(v Visit) power.Summary { return v.Run.Baseline })
		if len(all[0].Run.Variants) > 0 {
			point.Converted = new(meanOf(all, func(v Visit) power.Summary { return v.Run.Variants[0].Summary }))
		}
		r.Points = append(r.Points, point)
	}
	r.Finish(k)
	r.validate(p)
	return r
}

// meanOf returns the mean of visits: the geometric mean of joules and seconds.
func meanOf(visits []Visit, of func(Visit) power.Summary) (f Figures) {
	var joules, seconds, watts, clock []float64
	for _, v := range visits {
		s := of(v)
		joules, seconds, watts = append(joules, s.Joules), append(seconds, s.Seconds), append(watts, s.Watts)
		if s.SMClock != nil {
			clock = append(clock, *s.SMClock)
		}
	}
	f = Figures{Joules: stat.GeometricMean(joules, nil), Seconds: stat.GeometricMean(seconds, nil), Watts: stat.Mean(watts, nil)}
	if len(clock) > 0 {
		f.Clock = new(stat.Mean(clock, nil))
	}
	return f
}
