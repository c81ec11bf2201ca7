package profile

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Bursts are short runs of equal length that begin and end on an idle card. Their energy needs no deconvolution: the
// energy counter is read twice, each time while the card is idle.
type Bursts struct {
	Executions int       `json:"executions"` // number of executions of a burst
	Seconds    []float64 `json:"seconds"`    // length of each burst's work
	// Joules is each burst's energy above the idle card's energy, from the start of the work until 70 ms after its end.
	Joules []float64 `json:"joules"`
}

// Counted is the mean power in the time by which one burst is longer than another: the difference in energy divided by
// the difference in length. Energy drawn after the end of the work is the same in both bursts and cancels.
type Counted struct {
	From  Seconds `json:"from_seconds"`
	To    Seconds `json:"to_seconds"`
	Watts float64 `json:"watts"`
	Low   float64 `json:"low"` // ends of the 95 % interval
	High  float64 `json:"high"`
}

// burstLengths are the lengths of bursts.
var burstLengths = []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond}

const (
	// afterBurst is how long the sensors are read after a burst: longer than decayed plus one step of the energy
	// counter.
	afterBurst = 200 * time.Millisecond
	// decayed is the time after the work in which the card's power and the sensors' filter return to idle.
	decayed = 70 * ms
)

// setBursts creates the launch sequences of the bursts. Each burst length holds as many executions as a run completes
// in that time.
func (s *sequence) setBursts(run Timeline) {
	s.bursts = nil
	for _, length := range burstLengths {
		n := int(math.Round(run.doneAt(Seconds(length))))
		if n < 1 || n >= s.segments[0].Executions || len(s.bursts) > 0 && n <= s.bursts[len(s.bursts)-1].segments[0].Executions {
			continue
		}
		first := cuda.Segment{Product: s.segments[0].Product, Executions: n}
		s.bursts = append(s.bursts, &sequence{segments: []cuda.Segment{first}, lasts: length, after: afterBurst})
	}
}

// energy returns a run's energy above idle. Idle power comes from the fast sensors, before the work and after power has
// decayed: a card that has just worked draws more than a rested card. The energy counter may have no observed step in
// those intervals.
func (r *run) energy() (joules, idle float64, ok bool) {
	first, last, end := Seconds(0), Seconds(0), r.timeline.length()+decayed
	var before, after []float64
	for _, a := range r.readings {
		switch {
		case a.Sensor == stitch.Counter:
			first, last = min(first, a.Since), max(last, a.At)
			joules += a.Watts * (a.At - a.Since).Seconds()
		case a.Sensor == stitch.Average:
		case a.At < 0:
			before = append(before, a.Watts)
		case a.At > end:
			after = append(after, a.Watts)
		}
	}
	if first == 0 || last <= end || len(before) == 0 {
		return 0, 0, false
	}
	idle = stats.Median(before)
	tail := idle
	if len(after) > 0 { // readings from a driver's buffer may arrive late
		tail = stats.Median(after)
	}
	return joules - idle*(end-first).Seconds() - tail*(last-end).Seconds(), idle, true
}

// countBursts fills in the energy of a card's bursts and the power computed from it.
func (p *Profile) countBursts(s *sequence, card int) {
	var idle []float64
	for _, b := range s.bursts {
		one := Bursts{Executions: b.segments[0].Executions}
		for _, r := range b.of(card) {
			if joules, before, ok := r.energy(); ok {
				one.Seconds = append(one.Seconds, r.timeline.length().Seconds())
				one.Joules = append(one.Joules, joules)
				idle = append(idle, before)
			}
		}
		if len(one.Joules) >= 2 {
			p.Bursts = append(p.Bursts, one)
		}
	}
	if len(p.Bursts) >= 2 {
		p.Counted = counted(p.Bursts, stat.Mean(idle, nil))
	}
}

// counted returns the power between burst lengths: for each pair of neighbouring lengths, and for the shortest and the
// longest. Bursts of the same nominal length differ slightly. The mean power of all bursts corrects their energy for
// the difference.
func counted(bursts []Bursts, idle float64) (all []Counted) {
	last := bursts[len(bursts)-1]
	rate := (stat.Mean(last.Joules, nil) - stat.Mean(bursts[0].Joules, nil)) / (stat.Mean(last.Seconds, nil) - stat.Mean(bursts[0].Seconds, nil))
	variance := func(b Bursts) float64 { // variance of the mean energy
		var off []float64
		for i, joules := range b.Joules {
			off = append(off, joules-rate*b.Seconds[i])
		}
		return stat.Variance(off, nil) / float64(len(off))
	}
	between := func(a, b Bursts) {
		from, to := stat.Mean(a.Seconds, nil), stat.Mean(b.Seconds, nil)
		c := Counted{From: stitch.Of(from), To: stitch.Of(to), Watts: idle + (stat.Mean(b.Joules, nil)-stat.Mean(a.Joules, nil))/(to-from)}
		half := stats.Student(float64(len(a.Joules)+len(b.Joules)-2), 0.95) * math.Sqrt(variance(a)+variance(b)) / (to - from)
		c.Low, c.High = c.Watts-half, c.Watts+half
		all = append(all, c)
	}
	for i, b := range bursts[1:] {
		between(bursts[i], b)
	}
	if len(bursts) > 2 {
		between(bursts[0], last)
	}
	return all
}
