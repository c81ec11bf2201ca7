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

// Result is the result of a sweep. Ratios are relative to the original at the reference. Absent fields are unknown.
type Result struct {
	GPU    string `json:"gpu"`
	CardID string `json:"card_id,omitempty"` // see [power.Info]; absent from predictions
	// Predicted is true if all figures are predictions.
	Predicted bool `json:"predicted,omitempty"`
	// Simulated is true for a simulated card. Its figures say nothing about a real card.
	Simulated bool   `json:"simulated,omitempty"`
	Workload  string `json:"workload,omitempty"`
	Before    string `json:"original"`
	After     string `json:"converted,omitempty"`
	// Reference is the power limit at the start, or the calibration's limit for predictions. Default is the card's
	// default limit.
	Reference float64 `json:"reference_watts"`
	Default   float64 `json:"default_watts,omitempty"`
	// Intervals is the kind of all intervals: [Intervals95] or [IntervalsModel].
	Intervals string `json:"intervals"`
	// Points are sorted by power limit, then by clock.
	Points []Point `json:"points"`
	Best   []Best  `json:"best,omitempty"`
	// Drift is the largest ratio between two visits of the reference, minus 1.
	Drift    float64  `json:"drift,omitempty"`
	Valid    bool     `json:"valid"`
	Invalid  []string `json:"invalid,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Stopped is "cancelled" or "failed". It is empty if the sweep was completed.
	Stopped     string  `json:"stopped,omitempty"`
	Date        string  `json:"date,omitempty"`
	Command     string  `json:"command,omitempty"`
	Calibration string  `json:"calibration,omitempty"`
	Visits      []Visit `json:"visits,omitempty"` // in the order of the visits
}

// Point is a setting with the figures of one pass through all products.
type Point struct {
	Setting
	Predicted bool `json:"predicted,omitempty"`
	// Extrapolated is true if the figures are extrapolated from the lowest measured setting.
	Extrapolated bool     `json:"extrapolated,omitempty"`
	Visits       int      `json:"visits,omitempty"`
	Original     Figures  `json:"original"`
	Converted    *Figures `json:"converted,omitempty"`
}

// Figures are the figures of the products at one setting.
type Figures struct {
	Joules  float64  `json:"joules"`  // joules per pass
	Seconds float64  `json:"seconds"` // seconds per pass
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

// EDS is the energy-delay sum for one k.
type EDS struct {
	K     float64 `json:"k"`
	Value float64 `json:"value"`
}

// Best holds the best settings by one metric: for the setting alone, for the conversion alone, and for setting and
// conversion together. For energy, edp and eds the lowest value is best, for energy_gain_minus_time_loss the highest.
type Best struct {
	Metric    string  `json:"metric"`
	K         float64 `json:"k,omitempty"` // parameter k of eds
	Setting   Choice  `json:"setting_alone"`
	Transform *Choice `json:"conversion_alone,omitempty"`
	Both      *Choice `json:"both,omitempty"`
}

// Choice is a setting with its value of a metric. Settings in AsGood do not differ from it by more than their
// intervals.
type Choice struct {
	Setting
	Value  float64   `json:"value"`
	AsGood []Setting `json:"as_good,omitempty"`
}

// IsReference reports whether a setting is the reference.
func (r *Result) IsReference(s Setting) bool { return s == Setting{Cap: r.Reference} }

// OutOfTime returns the settings with a visit that ran out of time before its intervals reached the precision.
func (r *Result) OutOfTime() (at []Setting) {
	for _, v := range r.Visits {
		if v.Run.Stopped == power.StoppedTime && !slices.Contains(at, v.Setting) {
			at = append(at, v.Setting)
		}
	}
	return at
}

// reference returns the point of the reference; nil if it was not measured.
func (r *Result) reference() *Point {
	i := slices.IndexFunc(r.Points, func(p Point) bool { return r.IsReference(p.Setting) })
	if i < 0 {
		return nil
	}
	return &r.Points[i]
}

// Finish sorts the points. From their joules and seconds it computes ratios, metrics, intervals of measurements and the
// best settings. Predictions already have their intervals.
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

// relate computes the ratios to joules and seconds of the original at the reference.
func (f *Figures) relate(joules, seconds float64, k []float64) {
	e, t := f.Joules/joules, f.Seconds/seconds
	f.RelativeEnergy, f.RelativeTime = e, t
	f.EDP, f.GainMinusLoss, f.EDS = power.EDP(e, t), power.GainMinusLoss(e, t), nil
	for _, k := range k {
		f.EDS = append(f.EDS, EDS{k, power.EDS(e, t, k)})
	}
}

// newResult makes a result from visits. A setting with several visits gets their mean.
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

// meanOf returns the geometric mean of joules and seconds over visits.
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
