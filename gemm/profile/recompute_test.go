package profile

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// sound returns a result that can be recomputed.
func sound() *Result {
	ms := func(n int) Seconds { return Seconds(n) * ms }
	return &Result{Products: make([]Product, 1), Profiles: []Profile{{
		Segments:  []Segment{{Executions: 10, End: ms(100)}},
		Timelines: map[int]Timeline{1: {[]int{0, 10}, []Seconds{0, ms(100)}}, 2: {[]int{0, 10}, []Seconds{0, ms(101)}}},
		Readings:  []stitch.Reading{{Run: 1, Sensor: stitch.Buffer, At: ms(50), Watts: 300}, {Run: 2, Sensor: stitch.Counter, Since: ms(-40), At: ms(60), Watts: 300}},
	}}}
}

// TestRecomputeRefuses: files without readings, or with impossible values, are refused.
func TestRecomputeRefuses(t *testing.T) {
	for want, spoil := range map[string]func(*Result){
		"contains no profile":                               func(r *Result) { r.Profiles = nil },
		"contains no readings":                              func(r *Result) { r.Profiles[0].Readings = nil },
		"is not valid for a result of 1 product":            func(r *Result) { r.Profiles[0].Segments[0].Product = 1 },
		"does not go":                                       func(r *Result) { r.Profiles[0].Timelines[2].At[0] = 5 },
		"from 0 to 10":                                      func(r *Result) { r.Profiles[0].Timelines[1].Done[1] = 11 },
		"its timeline has other execution counts":           func(r *Result) { r.Profiles[0].Timelines[2] = Timeline{[]int{0, 5, 10}, []Seconds{0, 5, 10}} },
		"(run 3, driver's buffer): the run has no timeline": func(r *Result) { r.Profiles[0].Readings[0].Run = 3 },
		"(run 1, driver's buffer): since_seconds is given":  func(r *Result) { r.Profiles[0].Readings[0].Since = 20 * ms },
		"tolerance -1: give a":                              nil,
		"segment 1 is listed from 0 ns to 1000000000 s, but the mean run executes it from 0 ns to 100 ms": func(r *Result) {
			r.Profiles[0].Segments[0].End = 1e9 * Seconds(time.Second)
		},
		"segment 1 is listed from 1 ms to": func(r *Result) { r.Profiles[0].Segments[0].Begin = ms },
		"segment 2 is listed from 0 ns to 100 ms": func(r *Result) {
			p := &r.Profiles[0]
			p.Segments = []Segment{{Executions: 5, End: 50 * ms}, {Executions: 5, End: 100 * ms}}
		},
		"3 segments":                     func(r *Result) { r.Profiles[0].Segments = make([]Segment, 3) },
		"2305843009213693952 executions": func(r *Result) { r.Profiles[0].Segments[0].Executions = 1 << 61 },
		"run 2 works for 240 s":          func(r *Result) { r.Profiles[0].Timelines[2].At[1] = 4 * Seconds(time.Minute) },
		"take more than a day": func(r *Result) {
			p := &r.Profiles[0]
			for run := range 500 {
				p.Timelines[run] = Timeline{[]int{0, 10}, []Seconds{0, 3 * Seconds(time.Minute)}}
			}
		},
		"reading 1 (run 1, driver's buffer): -100 W: expected 0 to 100000": func(r *Result) { r.Profiles[0].Readings[0].Watts = -100 },
		"1e+308 W":                        func(r *Result) { r.Profiles[0].Readings[1].Watts = 1e308 },
		"NaN W":                           func(r *Result) { r.Profiles[0].Readings[1].Watts = math.NaN() },
		"start of the work is below 1 W":  func(r *Result) { r.Profiles[0].Readings[0].Watts, r.Profiles[0].Readings[1].Watts = 0, 0 },
		"unknown sensor":                  func(r *Result) { r.Profiles[0].Readings[0].Sensor = "x" },
		"expected at most 360 s":          func(r *Result) { r.Profiles[0].Readings[0].At = math.MinInt64 },
		"averaging time from 60 ms":       func(r *Result) { r.Profiles[0].Readings[1].Since = 60*ms + 1 },
		"energy counter steps every 60 s": func(r *Result) { r.Profiles[0].Readings[1].Since = 60*ms - Seconds(time.Minute) },
		"instant power averages over 10000 s": func(r *Result) {
			r.SelfTest = &power.SelfTest{Instant: &power.Response{Window: 1e4}}
		},
	} {
		r, o := sound(), Options{}
		if spoil == nil {
			o.Tolerance = -1
		} else {
			spoil(r)
		}
		if err := Recompute(context.Background(), r, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
