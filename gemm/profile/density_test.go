package profile

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// TestDensityFallsShort: a sensor that reads every 20 ms gives an execution of 3 µs no reading, and the result says so.
func TestDensityFallsShort(t *testing.T) {
	p := usual(t).Profiles[0]
	d := p.Density
	if d == nil || d.Asked != 1 || d.SSE > 0 || d.Met() || d.Steady < 100 {
		t.Fatalf("%+v", d)
	}
	// A run has a reading for each 20 ms of the buffer and each 100 ms of the instant power; repeated values do not count.
	if runs := 1 / (3e-6 * (1/0.02 + 1/0.1)); float64(d.Runs) < runs || float64(d.Runs) > 2*runs {
		t.Errorf("%d runs, by the sensors' periods %.0f", d.Runs, runs)
	}
}

// TestDensityMet counts readings where their windows have the middle, of used sensors other than the counter.
func TestDensityMet(t *testing.T) {
	p := &Profile{
		Segments: []Segment{{Executions: 4, End: 40 * ms}}, Golden: 2,
		Sensors: []stitch.Sensor{{Name: stitch.Buffer, Used: true, Window: 4 * ms, Delay: ms}, {Name: stitch.Counter, Used: true}, {Name: stitch.Average}},
		Steady:  SteadyState{SSE: SteadyPoint{Found: true, Execution: 1, At: 10 * ms}, SSP: SteadyPoint{Found: true, Execution: 2, At: 20 * ms, Until: 40 * ms}},
	}
	p.mean = Timeline{[]int{0, 4}, []Seconds{0, 40 * ms}}
	for at := Seconds(0); at < 50*ms; at += 2 * ms {
		for _, sensor := range []string{stitch.Buffer, stitch.Counter, stitch.Average} {
			p.readings = append(p.readings, stitch.Reading{Sensor: sensor, At: at})
		}
	}
	// Middles of the buffer's windows are at 1, 3, 5, … ms: five within each execution.
	if d := p.density(Guidance{Density: 2 * ms}); *d != (Density{Asked: 5, SSE: 5, SSP: 5, Steady: 10, Runs: 2}) || !d.Met() {
		t.Errorf("%+v", d)
	}
	if d := p.density(Guidance{Density: ms}); d.Asked != 10 || d.Runs != 4 || d.Met() {
		t.Errorf("%+v", d)
	}
}
