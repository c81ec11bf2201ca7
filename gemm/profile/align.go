package profile

import (
	"math"
	"slices"
	"sort"
	"time"
)

// momentOf is when so many executions were done.
func momentOf(p Progress, done int) time.Duration {
	i := sort.SearchInts(p.Done, done)
	switch {
	case i == len(p.Done):
		return p.At[i-1]
	case p.Done[i] == done || i == 0:
		return p.At[i]
	}
	share := float64(done-p.Done[i-1]) / float64(p.Done[i]-p.Done[i-1])
	return between(p.At[i-1], p.At[i], share)
}

// doneAt is how many executions were done at a moment, the one under way as a part.
func doneAt(p Progress, at time.Duration) float64 {
	last := len(p.At) - 1
	if at <= 0 {
		return 0
	}
	if at >= p.At[last] {
		return float64(p.Done[last])
	}
	i := sort.Search(last, func(i int) bool { return p.At[i] > at })
	share := float64(at-p.At[i-1]) / float64(p.At[i]-p.At[i-1])
	return float64(p.Done[i-1]) + share*float64(p.Done[i]-p.Done[i-1])
}

// meanProgress of runs that all have the same entries in Done, at least one.
func meanProgress(runs []Progress) Progress {
	p := Progress{Done: slices.Clone(runs[0].Done), At: make([]time.Duration, len(runs[0].At))}
	for i := range p.At {
		for _, r := range runs {
			p.At[i] += r.At[i]
		}
		p.At[i] /= time.Duration(len(runs))
	}
	return p
}

// aligned is the moment at which the mean run had done as much as a run had at a moment of its own;
// before the work, and after it, nothing is stretched. So legs change at the same moment in all runs.
func aligned(own, mean Progress, at time.Duration) time.Duration {
	last := len(own.At) - 1
	if at <= 0 {
		return at
	}
	if at >= own.At[last] {
		return at - own.At[last] + mean.At[last]
	}
	i := sort.Search(last, func(i int) bool { return own.At[i] > at })
	share := float64(at-own.At[i-1]) / float64(own.At[i]-own.At[i-1])
	return between(mean.At[i-1], mean.At[i], share)
}

// evenly is the progress of a run whose legs take as long, each at one pace.
func evenly(p Progress, legs []Leg) Progress {
	q := Progress{Done: p.Done, At: slices.Clone(p.At)}
	before, i := 0, 0
	for _, l := range legs {
		for ; i < len(q.Done) && q.Done[i] <= before+l.Executions; i++ {
			q.At[i] = between(l.Begin, l.End, float64(q.Done[i]-before)/float64(l.Executions))
		}
		before += l.Executions
	}
	return q
}

func between(a, b time.Duration, share float64) time.Duration {
	return a + time.Duration(math.Round(share*float64(b-a)))
}

// part of a run from one number of executions to another, counted from there.
func part(p Progress, from, to int) Progress {
	begin := momentOf(p, from)
	q := Progress{Done: []int{0}, At: []time.Duration{0}}
	for i, done := range p.Done {
		if done > from && done < to {
			q.Done, q.At = append(q.Done, done-from), append(q.At, p.At[i]-begin)
		}
	}
	return Progress{append(q.Done, to-from), append(q.At, momentOf(p, to)-begin)}
}
