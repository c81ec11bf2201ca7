package profile

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// drawTimeline of a run whose entries in Done are given, or drawn.
func drawTimeline(t *rapid.T, done []int) Timeline {
	p := Timeline{Done: done, At: []Seconds{0}}
	if done == nil {
		p.Done = []int{0}
		for range rapid.IntRange(1, 20).Draw(t, "stamps") {
			p.Done = append(p.Done, p.Done[len(p.Done)-1]+rapid.IntRange(1, 50).Draw(t, "executions"))
		}
	}
	for i := range p.Done[1:] {
		each := rapid.Int64Range(1000, 3_000_000).Draw(t, "each")
		p.At = append(p.At, p.At[i]+Seconds(each)*Seconds(p.Done[i+1]-p.Done[i]))
	}
	return p
}

// TestDoneAndMoment: doneAt is the inverse of moment.
func TestDoneAndMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTimeline(t, nil)
		last := len(p.Done) - 1
		n := rapid.IntRange(0, p.Done[last]).Draw(t, "n")
		if got := p.doneAt(p.moment(n)); math.Abs(got-float64(n)) > 1e-3 {
			t.Fatalf("%d executions are done at %v, and then %v are", n, p.moment(n), got)
		}
		for i := range p.Done {
			if p.moment(p.Done[i]) != p.At[i] {
				t.Fatalf("stamp %d is at %v, not %v", i, p.moment(p.Done[i]), p.At[i])
			}
		}
		if p.moment(p.Done[last]+1) != p.At[last] || p.doneAt(p.At[last]+1) != float64(p.Done[last]) || p.doneAt(-1) != 0 {
			t.Fatal("it goes on beyond its ends")
		}
	})
}

// TestAlign: a run's moments move to the mean run's. They keep their order, and outside the work their distances.
func TestAlign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := drawTimeline(t, nil)
		other := drawTimeline(t, own.Done)
		mean := meanTimeline([]Timeline{own, other})
		for i := range own.At {
			if want := (own.At[i] + other.At[i]) / 2; mean.At[i] != want || own.align(mean, own.At[i]) != want {
				t.Fatalf("stamp %d: %v and %v became %v, and %v", i, own.At[i], other.At[i], mean.At[i], own.align(mean, own.At[i]))
			}
		}
		last := len(own.At) - 1
		off := Seconds(rapid.Int64Range(0, 1e9).Draw(t, "off"))
		if own.align(mean, -off) != -off || own.align(mean, own.At[last]+off) != mean.At[last]+off {
			t.Fatalf("%v outside became %v and %v", off, own.align(mean, -off), own.align(mean, own.At[last]+off))
		}
		a := Seconds(rapid.Int64Range(0, int64(own.At[last])).Draw(t, "a"))
		b := Seconds(rapid.Int64Range(0, int64(own.At[last])).Draw(t, "b"))
		if a < b && own.align(mean, a) > own.align(mean, b) {
			t.Fatalf("%v and %v changed places", a, b)
		}
		if got := own.align(own, a); got != a {
			t.Fatalf("aligned with itself %v became %v", a, got)
		}
	})
}

// TestPart: a part counts from its own beginning.
func TestPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTimeline(t, nil)
		last := p.Done[len(p.Done)-1]
		from := rapid.IntRange(0, last-1).Draw(t, "from")
		to := rapid.IntRange(from+1, last).Draw(t, "to")
		q := p.part(from, to)
		if q.Done[0] != 0 || q.At[0] != 0 || q.Done[len(q.Done)-1] != to-from {
			t.Fatalf("%+v is not from 0 to %d", q, to-from)
		}
		n := rapid.IntRange(0, to-from).Draw(t, "n")
		if off := q.moment(n) + p.moment(from) - p.moment(from+n); off.Abs() > 2 {
			t.Fatalf("execution %d is off by %v", n, off)
		}
	})
}

func TestTimelineOf(t *testing.T) {
	segments := []cuda.Segment{{Product: 0, Executions: 3}, {Product: 1, Executions: 2}}
	at := func(n int) time.Duration { return time.Hour + time.Duration(n)*time.Millisecond }
	p, err := timelineOf([]cuda.Stamp{{At: at(0)}, {Done: 1, At: at(2)}, {Done: 3, At: at(5)}, {Segment: 1, At: at(5)}, {Segment: 1, Done: 2, At: at(9)}}, segments)
	want := Timeline{[]int{0, 1, 3, 5}, []Seconds{0, 2 * ms, 5 * ms, 9 * ms}}
	if err != nil || len(p.Done) != 4 {
		t.Fatal(p, err)
	}
	for i := range want.Done {
		if p.Done[i] != want.Done[i] || p.At[i] != want.At[i] {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	for what, stamps := range map[string][]cuda.Stamp{
		"none":              nil,
		"one":               {{}},
		"short":             {{At: at(0)}, {Done: 3, At: at(5)}},
		"backwards":         {{At: at(3)}, {Done: 3, At: at(2)}, {Segment: 1, Done: 2, At: at(9)}},
		"undone":            {{At: at(0)}, {Done: 3, At: at(5)}, {Done: 2, At: at(6)}, {Segment: 1, Done: 2, At: at(9)}},
		"another segment's": {{At: at(0)}, {Segment: 2, Done: 2, At: at(9)}},
		"no time":           {{At: at(0)}, {Segment: 1, Done: 2, At: at(0)}},
	} {
		if p, err := timelineOf(stamps, segments); err == nil {
			t.Errorf("%s: %+v", what, p)
		}
	}
}

// TestSpeedOfRuns: a run's speed is relative to the usual one of the segment, at the moments of the mean run.
func TestSpeedOfRuns(t *testing.T) {
	at := func(all ...int) (moments []Seconds) {
		for _, n := range all {
			moments = append(moments, Seconds(n)*ms)
		}
		return moments
	}
	done := []int{0, 10, 20, 60, 100}
	p := Profile{Segments: []Segment{{Executions: 20, Begin: 0, End: 20 * ms}, {Executions: 80, Begin: 20 * ms, End: 40 * ms}}}
	p.setTimelines(map[int]Timeline{
		1: {done, at(0, 10, 20, 30, 40)},
		2: {done, at(0, 5, 10, 20, 30)},
		3: {done, at(0, 15, 30, 40, 50)},
	})
	p.usual = p.mean.atEvenSpeed(p.Segments)
	for _, test := range []struct {
		run, from, to int
		want          float64
	}{
		{1, 0, 10, 1}, {1, 25, 35, 1}, {1, 15, 25, 1}, // another segment has its own usual pace
		{2, 0, 10, 2}, {2, 12, 18, 2}, {2, 22, 38, 1},
		{3, 2, 8, 10.0 / 15}, {3, 30, 40, 1},
		{9, 0, 10, 1}, // unknown
	} {
		if got := p.speed(test.run, at(test.from)[0], at(test.to)[0]); !near64(got, test.want) {
			t.Errorf("run %d from %d to %d ms: %v, want %v", test.run, test.from, test.to, got, test.want)
		}
	}
	uneven := Timeline{Done: done, At: at(0, 4, 20, 36, 40)} // slower at the end of both segments
	if got := uneven.atEvenSpeed(p.Segments); got.At[1] != 10*ms || got.At[3] != 30*ms {
		t.Errorf("at an even pace %v", got.At)
	}
}
