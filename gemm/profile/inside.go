package profile

import (
	"fmt"
	"time"
)

// Inside is the power within one execution: all executions of steady power folded onto each other.
type Inside struct {
	// Resolved is whether an execution lasts for two times the curve's resolution or more; else there are no watts,
	// and Why says more.
	Resolved   bool          `json:"resolved"`
	Why        string        `json:"why,omitempty"`
	Length     time.Duration `json:"-"`                    // of an execution
	Resolution time.Duration `json:"-"`                    // of the curve, the median
	Executions int           `json:"executions,omitempty"` // that were folded
	// Watts of equal parts of an execution, none shorter than the resolution, and their intervals.
	Watts []float64 `json:"watts,omitempty"`
	Low   []float64 `json:"low,omitempty"`
	High  []float64 `json:"high,omitempty"`
}

// inside folds the first leg, where its executions last long enough for two parts to be told apart.
func inside(p *Profile) *Inside {
	leg := p.Legs[0]
	mean := leg.End / time.Duration(leg.Executions)
	resolution := p.Resolution(0, leg.End)
	if !p.Steady.SSP.Found {
		return &Inside{Length: mean, Resolution: resolution, Why: "power was not steady"}
	}
	first := p.Steady.SSP.Execution // the next one is the first to count
	n := leg.Executions - first
	if n > 0 {
		mean = (leg.End - momentOf(p.progress, first)) / time.Duration(n)
	}
	parts := int(mean / max(resolution, p.Curve.Step))
	if parts < 2 || n < 1 {
		return &Inside{Length: mean, Resolution: resolution, Why: tooShort(mean, resolution, p.Sensors)}
	}
	in := &Inside{Resolved: true, Executions: n, Length: mean, Resolution: resolution, Watts: make([]float64, parts), Low: make([]float64, parts), High: make([]float64, parts)}
	for e := first; e < leg.Executions; e++ {
		begin, end := momentOf(p.progress, e), momentOf(p.progress, e+1)
		for i := range parts {
			from, to := between(begin, end, float64(i)/float64(parts)), between(begin, end, float64(i+1)/float64(parts))
			watts, low, high := p.Curve.Mean(from, to)
			in.Watts[i] += watts / float64(n)
			in.Low[i] += low / float64(n)
			in.High[i] += high / float64(n)
		}
	}
	return in
}

// tooShort says why an execution has no inside that these sensors could show.
func tooShort(execution, resolution time.Duration, sensors []Sensor) string {
	why := fmt.Sprintf("an execution takes %s", TimeText(execution))
	var finest *Sensor
	for i, s := range sensors {
		if s.Used && s.Window > 0 && (finest == nil || s.Window < finest.Window) {
			finest = &sensors[i]
		}
	}
	if finest != nil {
		why += fmt.Sprintf(", the quickest sensor (%s) averages over %s", finest.Name, TimeText(finest.Window))
	}
	why += fmt.Sprintf(", and the curve resolves %s", TimeText(resolution))
	if n := float64(resolution) / float64(max(execution, 1)); n >= 1.5 {
		why += fmt.Sprintf(": %.0f executions", n)
	}
	return why
}
