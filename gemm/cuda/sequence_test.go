package cuda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// sequence makes a sequence of these problems.
func sequence(t *testing.T, d *Device, problems ...gemm.Problem) *Sequence {
	t.Helper()
	tr, err := d.NewSequence(t.Context(), "test", products(problems...), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

func stamps(t *testing.T, tr *Sequence, segments ...Segment) []Stamp {
	t.Helper()
	if err := errors.Join(tr.Start(segments), tr.Wait(context.Background())); err != nil {
		t.Fatal(err)
	}
	s, err := tr.Stamps()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Executions of 100 µs: ten of them take a millisecond.
func TestStampsOfSegments(t *testing.T) {
	c := newCard(t)
	c.product = 100 * time.Microsecond
	tr := sequence(t, openFake(t, c), small...)
	before := c.launched
	s := stamps(t, tr, Segment{0, 50}, Segment{1, 3}, Segment{0, 1}, Segment{1, 26})
	if got := c.launched - before; got != 80 {
		t.Errorf("%d executions, not 80", got)
	}
	var want []Stamp
	executions := 0 // of earlier segments
	for segment, done := range [][]int{
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 26, 36, 46, 50},
		{1, 2, 3}, {1},
		{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 26},
	} {
		for _, n := range done {
			want = append(want, Stamp{segment, n, s[0].At + time.Duration(executions+n)*c.product})
		}
		executions += done[len(done)-1]
	}
	if !slices.EqualFunc(s, want, func(a, b Stamp) bool {
		return a.Segment == b.Segment && a.Done == b.Done && (a.At-b.At).Abs() < 100*time.Nanosecond
	}) {
		t.Errorf("stamps %v\n  want %v", s, want)
	}
}

// Traffic follows the products, and has stamps as they do.
func TestStampsOfTraffic(t *testing.T) {
	c := newCard(t)
	c.product, c.transfer = 100*time.Microsecond, 30*time.Microsecond
	tr, err := openFake(t, c).NewSequence(t.Context(), "mixed", products(small[0]), []Traffic{{Name: "copy", Kind: Copy, Bytes: 64}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := stamps(t, tr, Segment{1, 40}, Segment{0, 2})
	copied := 0
	for i := 1; i < len(s); i++ {
		want := time.Duration(s[i].Done) * c.product
		if s[i].Segment == 0 {
			copied = i
			want = time.Duration(s[i].Done) * c.transfer
		} else {
			want += s[copied].At - s[0].At
		}
		if took := s[i].At - s[0].At; (took - want).Abs() > 100*time.Nanosecond {
			t.Errorf("%+v after %v, want %v", s[i], took, want)
		}
	}
	if s[copied].Done != 40 || s[len(s)-1].Done != 2 {
		t.Errorf("stamps %v", s)
	}
}

// A sequence of many pieces never leaves the card idle, and reuses its events.
func TestSequencesAreBackToBack(t *testing.T) {
	for _, each := range []time.Duration{7 * time.Microsecond, 1603 * time.Microsecond, 40 * time.Millisecond} {
		c := newCard(t)
		c.product, c.query = each, 20*time.Millisecond
		d := openFake(t, c)
		tr := sequence(t, d, small[0])
		n := int(400 * time.Millisecond / each)
		events := 0
		for range 3 {
			s := stamps(t, tr, Segment{0, n})
			for i := 1; i < len(s); i++ {
				want := time.Duration(s[i].Done-s[i-1].Done) * each
				if took := s[i].At - s[i-1].At; (took-want).Abs() > 100*time.Nanosecond || want > max(each, stampEvery) {
					t.Fatalf("executions %d to %d of %v took %v", s[i-1].Done, s[i].Done, each, took)
				}
			}
			if last := s[len(s)-1]; last.Done != n {
				t.Errorf("the last stamp is %v, of %d executions", last, n)
			}
			if events > 0 && len(d.timeline.free) != events {
				t.Errorf("%d events, %d after the first run", len(d.timeline.free), events)
			}
			events = len(d.timeline.free)
		}
		if events > (ahead+1)*(singles+30) {
			t.Errorf("%d events for executions of %v", events, each)
		}
	}
}

// A low clock while a sequence is made does not change how much work is queued ahead.
func TestSequencesOnAnIdleCard(t *testing.T) {
	c := newCard(t)
	c.product, c.slow = 100*time.Microsecond, 4*time.Millisecond
	tr := sequence(t, openFake(t, c), small[0])
	if each := tr.graphs[0]; each.once != c.product || each.group != 10 {
		t.Errorf("an execution of %v is taken for one of %v, %d to a stamp", c.product, each.once, each.group)
	}
}

// The host takes 5 µs for a launch and the card 30 µs for an execution: the first must not seem longer.
func TestFirstExecutionDoesNotWaitForTheHost(t *testing.T) {
	c := newCard(t)
	c.product, c.transfer, c.call = 30*time.Microsecond, 10*time.Microsecond, 5*time.Microsecond
	s := stamps(t, sequence(t, openFake(t, c), small[0]), Segment{0, 4})
	for i := 1; i < len(s); i++ {
		if took := s[i].At - s[i-1].At; (took - c.product).Abs() > 10*time.Nanosecond {
			t.Errorf("execution %d took %v", i, took)
		}
	}
}

func TestSequenceRefuses(t *testing.T) {
	d := openFake(t, newCard(t))
	if _, err := d.NewSequence(t.Context(), "none", nil, nil); err == nil || err.Error() != "sequence none: give at least one product or traffic pattern" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.NewSequence(ctx, "late", products(small...), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tr := sequence(t, d, small...)
	if err := tr.Wait(t.Context()); err == nil {
		t.Error("waited for nothing")
	}
	if _, err := tr.Stamps(); err == nil {
		t.Error("stamps of nothing")
	}
	for _, segments := range [][]Segment{nil, {{0, 0}}, {{0, 1}, {2, 1}}, {{-1, 1}}} {
		if err := tr.Start(segments); err == nil || !strings.Contains(err.Error(), "sequence test: ") {
			t.Errorf("%v: %v", segments, err)
		}
	}
}

func TestSequencesBatchesAndClocksTakeTurns(t *testing.T) {
	c := newCard(t)
	c.product = 5 * time.Millisecond
	d := openFake(t, c)
	b, tr := batch(t, d, Options{Repeat: 1}, small...), sequence(t, d, small...)
	defer b.Close()
	now := func() time.Duration { return c.now }
	begun := c.now
	if err := tr.Start([]Segment{{0, 1_000_000}}); err != nil {
		t.Fatal(err)
	}
	var queued time.Duration
	if err := d.thread.do(func() error { queued = c.busyUntil - c.now; return nil }); err != nil || queued > 100*time.Millisecond || queued < pieceTime {
		t.Errorf("%v are queued, %v", queued, err)
	}
	if err := b.Start(1); err == nil || !strings.Contains(err.Error(), "batch test: sequence test is running on this GPU: call Wait for it first") {
		t.Error(err)
	}
	if _, err := d.ReadClock(now); err == nil || !strings.Contains(err.Error(), "sequence test is running") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tr.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := b.Start(1); err != nil || !tr.run.over() {
		t.Errorf("%v; did the cancelled sequence drain first? %v", err, tr.run.over())
	}
	if err := b.Wait(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := tr.Stamps(); !errors.Is(err, errCancelled) {
		t.Error(err)
	}
	if took := c.now - begun; took > time.Minute {
		t.Errorf("a cancelled sequence of 5000 s ran on for %v", took)
	}
	if r, err := d.ReadClock(now); err != nil || r.Card <= 0 {
		t.Error(r, err)
	}
	if s := stamps(t, tr, Segment{1, 2}); len(s) != 3 {
		t.Error(s)
	}
}

func TestCloseEndsARunningSequence(t *testing.T) {
	for _, deviceFirst := range []bool{false, true} {
		c := newCard(t)
		c.product = time.Millisecond
		d := openFake(t, c)
		before := len(c.alive) - len(d.timeline.free)
		tr, err := d.NewSequence(t.Context(), "long", products(small...), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Start([]Segment{{0, 1_000_000}}); err != nil {
			t.Fatal(err)
		}
		if deviceFirst {
			if err := errors.Join(d.Close(), tr.Close()); err != nil {
				t.Error(err)
			}
			if err := tr.Start([]Segment{{0, 1}}); !errors.Is(err, errClosed) {
				t.Error(err)
			}
			continue
		}
		if err := errors.Join(tr.Close(), tr.Close()); err != nil {
			t.Error(err)
		}
		if c.busyUntil > c.now {
			t.Errorf("the card is busy for another %v", c.busyUntil-c.now)
		}
		if after := len(c.alive) - len(d.timeline.free); after != before {
			t.Errorf("%d things on the card besides spare events, %d before", after, before)
		}
	}
}

// A call that fails in the middle of a sequence ends it with that error; the next sequence runs.
func TestSequenceFailsInTheMiddle(t *testing.T) {
	for _, call := range []string{"cuGraphLaunch", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime"} {
		c := newCard(t)
		c.product, c.query = time.Millisecond, 5*time.Millisecond
		tr := sequence(t, openFake(t, c), small...)
		c.fail[call] = 150 // more than is queued at the beginning
		if err := tr.Start([]Segment{{0, 1000}}); err != nil {
			t.Fatal(call, err)
		}
		err := tr.Wait(context.Background())
		if err == nil || !strings.Contains(err.Error(), "sequence test: ") || !strings.Contains(err.Error(), "PLANTED") {
			t.Errorf("%s: %v", call, err)
		}
		if _, again := tr.Stamps(); again != err {
			t.Errorf("%s: stamps say %v", call, again)
		}
		if c.busyUntil > c.now {
			t.Errorf("%s: the card is busy for another %v", call, c.busyUntil-c.now)
		}
		delete(c.fail, call)
		if s := stamps(t, tr, Segment{0, 5}); len(s) != 6 {
			t.Errorf("%s: then %v", call, s)
		}
	}
}

// Whichever call fails, at any time, everything is freed and the error names the call.
func TestSequencesAndTrafficAreGivenBackAfterFailures(t *testing.T) {
	use := func(c *card) (err error) {
		d, err := open(c.api(), 0, false)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		tr, err := d.NewSequence(context.Background(), "t", products(small...), nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tr.Close()) }()
		m, err := d.NewMix(context.Background(), "m", nil, []Traffic{{Name: "copy", Kind: Copy, Bytes: 64}, {Name: "fill", Kind: Fill, Bytes: 8}}, Options{Repeat: 1})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Close()) }()
		if err := tr.Start([]Segment{{0, 2}, {1, 1}}); err != nil {
			return err
		}
		if err := tr.Wait(context.Background()); err != nil {
			return err
		}
		_, err = d.ReadClock(func() time.Duration { return c.now })
		return err
	}
	for _, call := range []string{"cuMemAlloc", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime", "cuGraphInstantiate",
		"cuGraphLaunch", "cuMemcpyDtoDAsync", "cuMemsetD32Async", "cublasLtMatmul"} {
		failed := 0
		for ; failed < 200; failed++ {
			c := newCard(t)
			c.product, c.query = 600*time.Microsecond, 20*time.Millisecond // one graph for both kinds of stamps
			c.fail[call] = failed
			err := use(c)
			c.leaks()
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "PLANTED") && !strings.Contains(err.Error(), "status ") {
				t.Errorf("%s: %v", call, err)
			}
		}
		if failed == 0 || failed == 200 {
			t.Errorf("%s failed %d times", call, failed)
		}
	}
}
