package profile

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestAgainRefuses what no profile with readings is.
func TestAgainRefuses(t *testing.T) {
	sound := func() *Result {
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		return &Result{Products: make([]Product, 1), Profiles: []Profile{{
			Legs:     []Leg{{Executions: 10, End: ms(100)}},
			Paces:    map[int]Progress{1: {[]int{0, 10}, []time.Duration{0, ms(100)}}, 2: {[]int{0, 10}, []time.Duration{0, ms(101)}}},
			Readings: []Reading{{Run: 1, Sensor: Buffer, At: ms(50), Watts: 300}, {Run: 2, Sensor: Counter, Since: ms(-40), At: ms(60), Watts: 300}},
		}}}
	}
	for want, spoil := range map[string]func(*Result){
		"no profile in it":  func(r *Result) { r.Profiles = nil },
		"no readings in it": func(r *Result) { r.Profiles[0].Readings = nil },
		"none of 1 product": func(r *Result) { r.Profiles[0].Legs[0].Product = 1 },
		"does not lead":     func(r *Result) { r.Profiles[0].Paces[2].At[0] = 5 },
		"from 0 to 10":      func(r *Result) { r.Profiles[0].Paces[1].Done[1] = 11 },
		"not stamped as":    func(r *Result) { r.Profiles[0].Paces[2] = Progress{[]int{0, 5, 10}, []time.Duration{0, 5, 10}} },
		"of run 3 by the driver's buffer: there is no progress": func(r *Result) { r.Profiles[0].Readings[0].Run = 3 },
		"tolerance -1: want a": nil,
		"leg 1 goes from 0s to 277777h46m40s: in the mean run it goes from 0s to 100.5ms": func(r *Result) {
			r.Profiles[0].Legs[0].End = 1e9 * time.Second
		},
		"leg 1 goes from 1ms to": func(r *Result) { r.Profiles[0].Legs[0].Begin = time.Millisecond },
		"leg 2 goes from 0s to 100ms": func(r *Result) {
			p := &r.Profiles[0]
			p.Legs = []Leg{{Executions: 5, End: 50 * time.Millisecond}, {Executions: 5, End: 100 * time.Millisecond}}
		},
		"3 legs":                         func(r *Result) { r.Profiles[0].Legs = make([]Leg, 3) },
		"2305843009213693952 executions": func(r *Result) { r.Profiles[0].Legs[0].Executions = 1 << 61 },
		"run 2 works for 4m0s":           func(r *Result) { r.Profiles[0].Paces[2].At[1] = 4 * time.Minute },
		"take more than a day": func(r *Result) {
			p := &r.Profiles[0]
			for run := range 500 {
				p.Paces[run] = Progress{[]int{0, 10}, []time.Duration{0, 3 * time.Minute}}
			}
		},
		"reading 1, of run 1 by the driver's buffer: -100 W: want 0 to 100000": func(r *Result) { r.Profiles[0].Readings[0].Watts = -100 },
		"1e+308 W":                        func(r *Result) { r.Profiles[0].Readings[1].Watts = 1e308 },
		"NaN W":                           func(r *Result) { r.Profiles[0].Readings[1].Watts = math.NaN() },
		"of less than 1 W":                func(r *Result) { r.Profiles[0].Readings[0].Watts, r.Profiles[0].Readings[1].Watts = 0, 0 },
		"no such sensor":                  func(r *Result) { r.Profiles[0].Readings[0].Sensor = "x" },
		"want at most 6m0s":               func(r *Result) { r.Profiles[0].Readings[0].At = math.MinInt64 },
		"the time from 60.000":            func(r *Result) { r.Profiles[0].Readings[1].Since = 60*time.Millisecond + 1 },
		"energy counter steps every 1m0s": func(r *Result) { r.Profiles[0].Readings[1].Since = 60*time.Millisecond - time.Minute },
		"instant power averages over 2h": func(r *Result) {
			r.SelfTest = &power.SelfTest{Instant: &power.Response{Window: 1e4}}
		},
	} {
		r, o := sound(), Options{}
		if spoil == nil {
			o.Tolerance = -1
		} else {
			spoil(r)
		}
		if err := Again(context.Background(), r, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
