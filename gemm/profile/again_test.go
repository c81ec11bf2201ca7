package profile

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestAgainRefuses what no profile with readings is.
func TestAgainRefuses(t *testing.T) {
	sound := func() *Result {
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		return &Result{Products: make([]Product, 1), Profiles: []Profile{{
			Legs:     []Leg{{Executions: 10, End: ms(100)}},
			Paces:    map[int]Progress{1: {[]int{0, 10}, []time.Duration{0, ms(100)}}, 2: {[]int{0, 10}, []time.Duration{0, ms(101)}}},
			Readings: []Reading{{Run: 1, Sensor: Buffer, At: ms(50), Watts: 300}, {Run: 2, Sensor: Buffer, At: ms(60), Watts: 300}},
		}}}
	}
	for want, spoil := range map[string]func(*Result){
		"no profile in it":     func(r *Result) { r.Profiles = nil },
		"no readings in it":    func(r *Result) { r.Profiles[0].Readings = nil },
		"none of 1 product":    func(r *Result) { r.Profiles[0].Legs[0].Product = 1 },
		"does not lead":        func(r *Result) { r.Profiles[0].Paces[2].At[0] = 5 },
		"from 0 to 10":         func(r *Result) { r.Profiles[0].Paces[1].Done[1] = 11 },
		"not stamped as":       func(r *Result) { r.Profiles[0].Paces[2] = Progress{[]int{0, 5, 10}, []time.Duration{0, 5, 10}} },
		"a reading of run 3":   func(r *Result) { r.Profiles[0].Readings[0].Run = 3 },
		"tolerance -1: want a": nil,
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
