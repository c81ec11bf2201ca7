package profile

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// Execution is the power within one execution, averaged over all executions at steady power.
type Execution struct {
	// Resolved reports whether an execution lasts at least twice the trace's resolution. Otherwise Watts is empty and
	// Why has the reason.
	Resolved   bool   `json:"resolved"`
	Why        string `json:"why,omitempty"`
	Executions int    `json:"executions,omitempty"` // number of averaged executions
	// Watts are the mean powers of equal parts of an execution, with the ends of their 95 % intervals. No part is
	// shorter than the resolution.
	Watts      []float64 `json:"watts,omitempty"`
	Low        []float64 `json:"low,omitempty"`
	High       []float64 `json:"high,omitempty"`
	Length     Seconds   `json:"execution_seconds"`  // mean length of an execution
	Resolution Seconds   `json:"resolution_seconds"` // median resolution of the trace
}

// withinExecution averages the executions of the first segment, if an execution is long enough for two parts.
func withinExecution(p *Profile) *Execution {
	segment := p.Segments[0]
	mean := segment.End / Seconds(segment.Executions)
	resolution := p.Resolution(0, segment.End)
	if !p.Steady.SSP.Found {
		return &Execution{Length: mean, Resolution: resolution, Why: "power was not steady"}
	}
	first := p.Steady.SSP.Execution // averaging starts with the next execution
	last := min(segment.Executions, int(p.mean.doneAt(p.Steady.SSP.Until)))
	n := last - first
	if n > 0 {
		mean = (p.mean.moment(last) - p.mean.moment(first)) / Seconds(n)
	}
	parts := int(mean / max(resolution, p.Trace.Step))
	if parts < 2 || n < 1 {
		return &Execution{Length: mean, Resolution: resolution, Why: tooShort(mean, resolution, p.Sensors)}
	}
	e := &Execution{Resolved: true, Executions: n, Length: mean, Resolution: resolution, Watts: make([]float64, parts), Low: make([]float64, parts), High: make([]float64, parts)}
	for done := first; done < last; done++ {
		begin, end := p.mean.moment(done), p.mean.moment(done+1)
		for i := range parts {
			from, to := between(begin, end, float64(i)/float64(parts)), between(begin, end, float64(i+1)/float64(parts))
			watts, low, high := p.Trace.Mean(from, to)
			e.Watts[i] += watts / float64(n)
			e.Low[i] += low / float64(n)
			e.High[i] += high / float64(n)
		}
	}
	return e
}

// tooShort returns the reason why the sensors cannot resolve an execution.
func tooShort(execution, resolution Seconds, sensors []stitch.Sensor) string {
	why := fmt.Sprintf("an execution takes %v", execution)
	var finest *stitch.Sensor
	for i, s := range sensors {
		if s.Used && s.Window > 0 && (finest == nil || s.Window < finest.Window) {
			finest = &sensors[i]
		}
	}
	if finest != nil {
		why += fmt.Sprintf(", the fastest sensor (%s) averages over %v", finest.Name, finest.Window)
	}
	why += fmt.Sprintf(", and the trace resolves %v", resolution)
	if n := float64(resolution) / float64(max(execution, 1)); n >= 1.5 {
		why += fmt.Sprintf(", which is %.0f executions", n)
	}
	return why
}
