package profile

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// drawProgress of a run whose entries in Done are given, or drawn.
func drawProgress(t *rapid.T, done []int) Progress {
	p := Progress{Done: done, At: []time.Duration{0}}
	if done == nil {
		p.Done = []int{0}
		for range rapid.IntRange(1, 20).Draw(t, "stamps") {
			p.Done = append(p.Done, p.Done[len(p.Done)-1]+rapid.IntRange(1, 50).Draw(t, "executions"))
		}
	}
	for i := range p.Done[1:] {
		each := rapid.Int64Range(1000, 3_000_000).Draw(t, "each")
		p.At = append(p.At, p.At[i]+time.Duration(each)*time.Duration(p.Done[i+1]-p.Done[i]))
	}
	return p
}

// TestDoneAndMoment are each other's inverse.
func TestDoneAndMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgress(t, nil)
		last := len(p.Done) - 1
		n := rapid.IntRange(0, p.Done[last]).Draw(t, "n")
		if got := doneAt(p, momentOf(p, n)); math.Abs(got-float64(n)) > 1e-3 {
			t.Fatalf("%d executions are done at %v, and then %v are", n, momentOf(p, n), got)
		}
		for i := range p.Done {
			if momentOf(p, p.Done[i]) != p.At[i] {
				t.Fatalf("stamp %d is at %v, not %v", i, momentOf(p, p.Done[i]), p.At[i])
			}
		}
		if momentOf(p, p.Done[last]+1) != p.At[last] || doneAt(p, p.At[last]+1) != float64(p.Done[last]) || doneAt(p, -1) != 0 {
			t.Fatal("it goes on beyond its ends")
		}
	})
}

// TestAligned puts what a run did at the moment at which the mean run did it, keeps order, and leaves
// what lies outside as far from the work as it was.
func TestAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := drawProgress(t, nil)
		other := drawProgress(t, own.Done)
		mean := meanProgress([]Progress{own, other})
		for i := range own.At {
			if want := (own.At[i] + other.At[i]) / 2; mean.At[i] != want || aligned(own, mean, own.At[i]) != want {
				t.Fatalf("stamp %d: %v and %v became %v, and %v", i, own.At[i], other.At[i], mean.At[i], aligned(own, mean, own.At[i]))
			}
		}
		last := len(own.At) - 1
		off := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "off"))
		if aligned(own, mean, -off) != -off || aligned(own, mean, own.At[last]+off) != mean.At[last]+off {
			t.Fatalf("%v outside became %v and %v", off, aligned(own, mean, -off), aligned(own, mean, own.At[last]+off))
		}
		a := time.Duration(rapid.Int64Range(0, int64(own.At[last])).Draw(t, "a"))
		b := time.Duration(rapid.Int64Range(0, int64(own.At[last])).Draw(t, "b"))
		if a < b && aligned(own, mean, a) > aligned(own, mean, b) {
			t.Fatalf("%v and %v changed places", a, b)
		}
		if got := aligned(own, own, a); got != a {
			t.Fatalf("aligned with itself %v became %v", a, got)
		}
	})
}

// TestPart counts on from a leg's beginning.
func TestPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgress(t, nil)
		last := p.Done[len(p.Done)-1]
		from := rapid.IntRange(0, last-1).Draw(t, "from")
		to := rapid.IntRange(from+1, last).Draw(t, "to")
		q := part(p, from, to)
		if q.Done[0] != 0 || q.At[0] != 0 || q.Done[len(q.Done)-1] != to-from {
			t.Fatalf("%+v is not from 0 to %d", q, to-from)
		}
		n := rapid.IntRange(0, to-from).Draw(t, "n")
		if off := momentOf(q, n) + momentOf(p, from) - momentOf(p, from+n); off.Abs() > 2 {
			t.Fatalf("execution %d is off by %v", n, off)
		}
	})
}

func TestProgressOf(t *testing.T) {
	legs := []cuda.Leg{{Product: 0, Executions: 3}, {Product: 1, Executions: 2}}
	ms := func(n int) time.Duration { return time.Hour + time.Duration(n)*time.Millisecond }
	p, err := progressOf([]cuda.Stamp{{At: ms(0)}, {Done: 1, At: ms(2)}, {Done: 3, At: ms(5)}, {Leg: 1, At: ms(5)}, {Leg: 1, Done: 2, At: ms(9)}}, legs)
	want := Progress{[]int{0, 1, 3, 5}, []time.Duration{0, 2 * time.Millisecond, 5 * time.Millisecond, 9 * time.Millisecond}}
	if err != nil || len(p.Done) != 4 {
		t.Fatal(p, err)
	}
	for i := range want.Done {
		if p.Done[i] != want.Done[i] || p.At[i] != want.At[i] {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	for what, stamps := range map[string][]cuda.Stamp{
		"none":          nil,
		"one":           {{}},
		"short":         {{At: ms(0)}, {Done: 3, At: ms(5)}},
		"backwards":     {{At: ms(3)}, {Done: 3, At: ms(2)}, {Leg: 1, Done: 2, At: ms(9)}},
		"undone":        {{At: ms(0)}, {Done: 3, At: ms(5)}, {Done: 2, At: ms(6)}, {Leg: 1, Done: 2, At: ms(9)}},
		"another leg's": {{At: ms(0)}, {Leg: 2, Done: 2, At: ms(9)}},
		"no time":       {{At: ms(0)}, {Leg: 1, Done: 2, At: ms(0)}},
	} {
		if p, err := progressOf(stamps, legs); err == nil {
			t.Errorf("%s: %+v", what, p)
		}
	}
}
