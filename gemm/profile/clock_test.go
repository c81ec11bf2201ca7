package profile

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// clockReadings are groups of readings, every 2.5 s, of a clock that started offset ago and runs fast by drift. A query
// takes delay, plus random jitter before and after the card reads its clock.
func clockReadings(rng *rand.Rand, offset time.Duration, drift float64, delay, jitter time.Duration, groups int) [][]cuda.ClockReading {
	card := func(host time.Duration) time.Duration {
		return offset + host + time.Duration(drift*1e-6*float64(host))
	}
	half := func() time.Duration { return delay/2 + time.Duration(float64(jitter)*rng.ExpFloat64()) }
	var all [][]cuda.ClockReading
	now := time.Second
	for g := range groups {
		var group []cuda.ClockReading
		for range []int{32, 4}[min(g, 1)] {
			r := cuda.ClockReading{Before: now}
			now += half()
			r.Card = card(now)
			now += half()
			r.After = now
			group = append(group, r)
		}
		all = append(all, group)
		now += 2500 * time.Millisecond
	}
	return all
}

// TestSyncFindsPlanted: planted offset and drift are found in spite of jitter.
func TestSyncFindsPlanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "offset"))
		drift := rapid.Float64Range(-200, 200).Draw(t, "drift")
		jitter := time.Duration(rapid.Int64Range(0, 5000).Draw(t, "jitter"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		const delay = 12 * time.Microsecond
		groups := clockReadings(rng, offset, drift, delay, jitter, 60)
		s, err := synchronise(groups)
		if err != nil {
			t.Fatal(err)
		}
		// The quickest of a group is off by a part of its jitter; over 150 s that is next to no drift.
		slack := Seconds(2*jitter + time.Microsecond)
		if math.Abs(s.Drift-drift) > 0.1 || s.Residual > slack || s.Delay < Seconds(delay/2) || s.Delay > Seconds(delay/2)+slack {
			t.Fatalf("drift %v (%v), residual %v, delay %v; planted jitter %v", s.Drift, drift, s.Residual, s.Delay, jitter)
		}
		for _, host := range []time.Duration{0, time.Minute, 3 * time.Minute} {
			card := offset + host + time.Duration(drift*1e-6*float64(host))
			if off := (s.Host(card) - host).Abs(); Seconds(off) > slack {
				t.Fatalf("%v is off by %v (jitter %v)", host, off, jitter)
			}
		}
	})
}

// TestSyncWeighsStalls: a group whose queries all stalled has hardly any weight.
func TestSyncWeighsStalls(t *testing.T) {
	groups := clockReadings(rand.New(rand.NewPCG(1, 2)), time.Hour, 0, 12*time.Microsecond, 0, 10)
	for i := range groups[4] {
		groups[4][i].After += 20 * time.Millisecond
	}
	s, err := synchronise(groups)
	if err != nil {
		t.Fatal(err)
	}
	if off := (s.Host(time.Hour+time.Minute) - time.Minute).Abs(); off > time.Microsecond || math.Abs(s.Drift) > 0.1 {
		t.Errorf("off by %v, drift %v", off, s.Drift)
	}
}

func TestSyncOfFew(t *testing.T) {
	if s, err := synchronise(nil); err == nil {
		t.Errorf("of nothing it found %+v", s)
	}
	groups := clockReadings(rand.New(rand.NewPCG(1, 2)), time.Hour, 100, 12*time.Microsecond, 0, 1)
	s, err := synchronise(groups)
	if err != nil || s.Drift != 0 || s.Groups != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if off := (s.Host(groups[0][0].Card) - groups[0][0].Before).Abs(); off > 10*time.Microsecond {
		t.Errorf("off by %v", off)
	}
	for i := range 5 { // a clock that stands still
		groups = append(groups, []cuda.ClockReading{{Before: time.Duration(i) * time.Second, After: time.Duration(i)*time.Second + 1, Card: 7}})
	}
	if s, err := synchronise(groups[1:]); err == nil {
		t.Errorf("of a clock that stands still it made %+v", s)
	}
}
