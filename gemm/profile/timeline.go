package profile

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// Seconds is a duration that JSON holds in seconds.
type Seconds = stitch.Seconds

const ms = Seconds(time.Millisecond)

// Timeline holds the progress of a run: Done[i] executions were completed At[i] after its start. The first entry is 0
// executions at 0 s. All executions between two entries count as equally long.
type Timeline struct {
	Done []int     `json:"done"`
	At   []Seconds `json:"at_seconds"`
}

// timelineOf converts time stamps to a timeline that counts the executions of all segments together, from the first
// stamp.
func timelineOf(stamps []cuda.Stamp, segments []cuda.Segment) (Timeline, error) {
	before := make([]int, len(segments)+1) // executions before each segment
	for i, l := range segments {
		before[i+1] = before[i] + l.Executions
	}
	var t Timeline
	for _, s := range stamps {
		if s.Segment < 0 || s.Segment >= len(segments) {
			return t, fmt.Errorf("a time stamp names segment %d, but the segments are 0 to %d", s.Segment, len(segments)-1)
		}
		done, at := before[s.Segment]+s.Done, Seconds(s.At-stamps[0].At)
		n := len(t.Done)
		if n > 0 && done == t.Done[n-1] {
			continue // a segment starts where the previous one ended
		}
		if n > 0 && (done < t.Done[n-1] || at < t.At[n-1]) {
			return t, fmt.Errorf("the card's time stamps run backwards: %d executions at %v come after %d executions at %v", done, at, t.Done[n-1], t.At[n-1])
		}
		t.Done, t.At = append(t.Done, done), append(t.At, at)
	}
	if n := len(t.Done); n < 2 || t.Done[0] != 0 || t.Done[n-1] != before[len(segments)] || t.At[n-1] == 0 {
		return t, fmt.Errorf("%d time stamps do not cover all %d executions", len(stamps), before[len(segments)])
	}
	return t, nil
}

// length returns the time of the last entry.
func (t Timeline) length() Seconds { return t.At[len(t.At)-1] }

// moment returns the time at which done executions were complete.
func (t Timeline) moment(done int) Seconds {
	i := sort.SearchInts(t.Done, done)
	switch {
	case i == len(t.Done):
		return t.At[i-1]
	case t.Done[i] == done || i == 0:
		return t.At[i]
	}
	share := float64(done-t.Done[i-1]) / float64(t.Done[i]-t.Done[i-1])
	return between(t.At[i-1], t.At[i], share)
}

// doneAt returns the number of executions complete at a moment, with the fraction of the current execution.
func (t Timeline) doneAt(at Seconds) float64 {
	last := len(t.At) - 1
	if at <= 0 {
		return 0
	}
	if at >= t.At[last] {
		return float64(t.Done[last])
	}
	i := sort.Search(last, func(i int) bool { return t.At[i] > at })
	share := float64(at-t.At[i-1]) / float64(t.At[i]-t.At[i-1])
	return float64(t.Done[i-1]) + share*float64(t.Done[i]-t.Done[i-1])
}

// executionSeconds returns, for each entry but the first, the duration of one execution since the entry before.
func (t Timeline) executionSeconds() (each []float64) {
	for i := 1; i < len(t.Done); i++ {
		each = append(each, (t.At[i]-t.At[i-1]).Seconds()/float64(max(1, t.Done[i]-t.Done[i-1])))
	}
	return each
}

// part returns the timeline between two numbers of executions, counted from the first.
func (t Timeline) part(from, to int) Timeline {
	begin := t.moment(from)
	p := Timeline{Done: []int{0}, At: []Seconds{0}}
	for i, done := range t.Done {
		if done > from && done < to {
			p.Done, p.At = append(p.Done, done-from), append(p.At, t.At[i]-begin)
		}
	}
	return Timeline{append(p.Done, to-from), append(p.At, t.moment(to)-begin)}
}

// atEvenSpeed returns a timeline of the same segments in which each segment has a constant speed and takes as long as
// in t.
func (t Timeline) atEvenSpeed(segments []Segment) Timeline {
	even := Timeline{Done: t.Done, At: slices.Clone(t.At)}
	before, i := 0, 0
	for _, s := range segments {
		for ; i < len(even.Done) && even.Done[i] <= before+s.Executions; i++ {
			even.At[i] = between(s.Begin, s.End, float64(even.Done[i]-before)/float64(s.Executions))
		}
		before += s.Executions
	}
	return even
}

// align converts a moment of this run to the moment at which the mean run had completed as many executions. Times
// before and after the work are only shifted. All aligned runs therefore change segments at the same moment.
func (t Timeline) align(mean Timeline, at Seconds) Seconds {
	last := len(t.At) - 1
	if at <= 0 {
		return at
	}
	if at >= t.At[last] {
		return at - t.At[last] + mean.At[last]
	}
	i := sort.Search(last, func(i int) bool { return t.At[i] > at })
	share := float64(at-t.At[i-1]) / float64(t.At[i]-t.At[i-1])
	return between(mean.At[i-1], mean.At[i], share)
}

// meanTimeline returns the mean timeline of at least one run. All runs must have the same entries in Done.
func meanTimeline(runs []Timeline) Timeline {
	mean := Timeline{Done: slices.Clone(runs[0].Done), At: make([]Seconds, len(runs[0].At))}
	for i := range mean.At {
		for _, r := range runs {
			mean.At[i] += r.At[i]
		}
		mean.At[i] /= Seconds(len(runs))
	}
	return mean
}

func between(a, b Seconds, share float64) Seconds {
	return a + Seconds(math.Round(share*float64(b-a)))
}
