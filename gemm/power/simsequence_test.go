package power

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// stamps runs a sequence and returns its time stamps.
func stamps(t testing.TB, tr *SimSequence, segments ...SimSegment) []SimStamp {
	t.Helper()
	if err := tr.Start(segments); err != nil {
		t.Fatal(err)
	}
	if err := tr.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	list, err := tr.Stamps()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// steadily returns a quiet card with equal sequences and the host's clock.
func steadily() SimOptions {
	o := quiet()
	o.FirstExecutions, o.SlowSequences, o.ClockOffset, o.ClockDrift = nil, 0, 0, 0
	return o
}

// TestSimSequenceStamps: the first executions of a segment have a stamp each, later ones about every millisecond, the
// last stamp has all executions, and times are those of the simulated executions.
func TestSimSequenceStamps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.SliceOfN(rapid.Float64Range(3e-6, 5e-3), 1, 3).Draw(t, "seconds")
		s := NewSim(steadily())
		var kernels []SimKernel
		for _, each := range seconds {
			kernels = append(kernels, SimKernel{Watts: 400, Seconds: each})
		}
		var segments []SimSegment
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			segments = append(segments, SimSegment{rapid.IntRange(0, len(kernels)-1).Draw(t, "kernel"), rapid.IntRange(1, 2000).Draw(t, "executions")})
		}
		begin := s.Now()
		tr := s.NewSequence(kernels)
		if err := tr.Start(segments); err != nil {
			t.Fatal(err)
		}
		if err := tr.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		list, err := tr.Stamps()
		if err != nil || list[0] != (SimStamp{At: begin}) {
			t.Fatalf("begins with %v at %v, %v", list[0], begin, err)
		}
		segment, done, at := 0, 0, begin.Seconds()
		for _, stamp := range list[1:] {
			if stamp.Segment != segment {
				if done != segments[segment].Executions || stamp.Segment != segment+1 {
					t.Fatalf("segment %d after %d of %d executions of segment %d", stamp.Segment, done, segments[segment].Executions, segment)
				}
				segment, done = stamp.Segment, 0
			}
			n, each := stamp.Done-done, seconds[segments[segment].Kernel]
			if single := done < 16; n < 1 || single && n != 1 || !single && n > 1 && float64(n)*each > 1.5e-3 {
				t.Fatalf("%d executions of %v s after %d have one stamp", n, each, done)
			}
			at, done = at+float64(n)*each, stamp.Done
			if off := stamp.At.Seconds() - at; off < -1e-6 || off > 1e-6+1e-9*float64(len(list)) {
				t.Fatalf("segment %d, %d done: %v s off", segment, done, off)
			}
		}
		if segment != len(segments)-1 || done != segments[segment].Executions {
			t.Fatalf("ends in segment %d with %d done", segment, done)
		}
	})
}

func TestSimSequenceFirstExecutions(t *testing.T) {
	o := steadily()
	o.FirstExecutions = []float64{1.5, 1.2, 1.05}
	s := NewSim(o)
	tr := s.NewSequence([]SimKernel{{Watts: 400, Seconds: 1e-3}})
	lasts := func(list []SimStamp, i int) float64 { return (list[i+1].At - list[i].At).Seconds() }
	cold := stamps(t, tr, SimSegment{0, 2}, SimSegment{0, 3})
	for i, want := range []float64{1.5e-3, 1.2e-3, 1.05e-3, 1e-3, 1e-3} {
		near(t, "execution from idle", lasts(cold, i), want, 1e-5)
	}
	near(t, "execution straight after another sequence", lasts(stamps(t, tr, SimSegment{0, 2}), 0), 1e-3, 1e-5)
	if err := s.Sleep(t.Context(), simIdle); err != nil {
		t.Fatal(err)
	}
	near(t, "execution after idling", lasts(stamps(t, tr, SimSegment{0, 2}), 0), 1.5e-3, 1e-5)
	// The loads have not changed.
	if err := s.Sleep(t.Context(), simIdle); err != nil {
		t.Fatal(err)
	}
	load := s.Load("a", 400, 1e-3)
	if err := load.Start(1); err != nil {
		t.Fatal(err)
	}
	if err := load.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	elapsed, _ := load.Elapsed()
	near(t, "execution of a load", elapsed.Seconds(), 1e-3, 1e-5)
}

func TestSimSequenceSlowRuns(t *testing.T) {
	o := steadily()
	o.SlowSequences, o.SlowBy = 0.25, 0.08
	s := NewSim(o)
	tr := s.NewSequence([]SimKernel{{Watts: 400, Seconds: 1e-3}})
	slow := 0
	for range 400 {
		list := stamps(t, tr, SimSegment{0, 4})
		took := (list[4].At - list[0].At).Seconds()
		if took > 4.1e-3 {
			slow++
			near(t, "slow sequence", took, 4*1.08e-3, 1e-5)
		} else {
			near(t, "sequence", took, 4e-3, 1e-5)
		}
	}
	if slow < 70 || slow > 130 { // 100 ± 8.7
		t.Errorf("%d of 400 sequences are slow, planted a quarter", slow)
	}
}

// TestSimSequenceDraws: a sequence draws as much as a load of the same kernels.
func TestSimSequenceDraws(t *testing.T) {
	sequence, load := NewSim(steadily()), NewSim(steadily())
	stamps(t, sequence.NewSequence([]SimKernel{{500, 1e-3, 20}}), SimSegment{0, 1500})
	l := load.Load("a", 500, 1e-3)
	l.Draw(500, 20)
	if err := l.Start(1500); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	near(t, "joules of a sequence", sequence.joule, load.joule, 1e-6)
	near(t, "joules of the memory", sequence.memJoule, load.memJoule, 1e-6)
}

func TestSimSequenceRefuses(t *testing.T) {
	s := NewSim(steadily())
	tr := s.NewSequence([]SimKernel{{Watts: 400, Seconds: 1e-3}})
	for _, segments := range [][]SimSegment{nil, {{1, 1}}, {{-1, 1}}, {{0, 1}, {0, 0}}} {
		if err := tr.Start(segments); err == nil {
			t.Errorf("segments %v are taken", segments)
		}
	}
	if _, err := tr.Stamps(); err == nil {
		t.Error("stamps of no run")
	}
	if err := tr.Start([]SimSegment{{0, 5000}}); err != nil {
		t.Fatal(err)
	}
	if err := s.NewSequence(tr.kernels).Start([]SimSegment{{0, 1}}); err == nil {
		t.Error("two sequences at a time")
	}
	if _, err := s.ReadClock(); err == nil {
		t.Error("the clock is read during a run")
	}
	if _, err := tr.Stamps(); err == nil {
		t.Error("stamps of an unfinished run")
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.At(time.Second, cancel)
	if err := tr.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s.Now() > 1100*time.Millisecond {
		t.Errorf("cancelled at 1 s, ended at %v", s.Now())
	}
	if _, err := tr.Stamps(); err == nil {
		t.Error("stamps of a run that was cancelled")
	}
	if list := stamps(t, tr, SimSegment{0, 1}); len(list) != 2 {
		t.Errorf("%d stamps of one execution after a cancelled run", len(list))
	}
}
