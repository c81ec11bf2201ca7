package cuda

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// steps is work for a graph: some launches of a kernel.
type steps struct {
	kernel *Function
	y      Address
	n      int
	called int
}

func newSteps(t *testing.T, d *Device, n int) *steps {
	return &steps{kernel: kernel(t, d, "scale", 0), y: alloc(t, d, 64), n: n}
}

func (s *steps) queue() error {
	s.called++
	for range s.n {
		if err := s.kernel.Launch(Grid{X: 1}, Grid{X: 32}, s.y, s.y, 16, float32(2), 0.0); err != nil {
			return err
		}
	}
	return nil
}

func newGraph(t *testing.T, d *Device, s *steps) (g *Graph) {
	t.Helper()
	do(t, d, func() (err error) { g, err = d.NewGraph("steps", s.queue); return err })
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// TestLongReplayIsTimedOnce: a replay of a long prompt is not repeated, because it cannot be interrupted.
func TestLongReplayIsTimedOnce(t *testing.T) {
	c := newCard(t)
	c.kernel = longReplay + time.Millisecond
	d := openFake(t, c)
	g := newGraph(t, d, newSteps(t, d, 1))
	if g.replay != c.kernel || len(c.launches) != 2 {
		t.Errorf("%v a replay, %d kernels ran", g.replay, len(c.launches))
	}
}

// The fake refuses to record a kernel that has not run, so NewGraph must run the work first. It replays twice to time it.
func TestGraphReplays(t *testing.T) {
	c := newCard(t)
	c.kernel = 2 * time.Millisecond
	d := openFake(t, c)
	s := newSteps(t, d, 3)
	g := newGraph(t, d, s)
	if g.Name() != "steps" || g.replay != 3*c.kernel || s.called != 2 || len(c.launches) != 9 {
		t.Errorf("%s takes %v a replay; its work was queued %d times, %d kernels ran", g.Name(), g.replay, s.called, len(c.launches))
	}
	if _, err := g.Elapsed(); err == nil || err.Error() != "graph steps: the replays have not ended: call Start and Wait first" {
		t.Error(err)
	}
	if err := g.Wait(t.Context()); err == nil || err.Error() != "graph steps: call Start before Wait" {
		t.Error(err)
	}
	if err := g.Start(0); err == nil || err.Error() != "graph steps: 0 replays: give at least one" {
		t.Error(err)
	}
	for _, n := range []int{1, 3, 4, 5, 13, 100} { // a piece is 4 replays
		before := len(c.launches)
		if err := errors.Join(g.Start(n), g.Wait(t.Context())); err != nil {
			t.Fatal(err)
		}
		took, err := g.Elapsed()
		if want := time.Duration(n) * g.replay; err != nil || (took-want).Abs() > time.Microsecond {
			t.Errorf("%d replays took %v, %v; want %v", n, took, err, want)
		}
		if ran := len(c.launches) - before; ran != 3*n {
			t.Errorf("%d replays ran %d kernels", n, ran)
		}
	}
	if s.called != 2 {
		t.Errorf("the work was queued %d times", s.called)
	}
}

func TestGraphsTakeTurns(t *testing.T) {
	c := newCard(t)
	c.kernel = 50 * time.Millisecond
	d := openFake(t, c)
	a, b := newGraph(t, d, newSteps(t, d, 1)), newGraph(t, d, newSteps(t, d, 1))
	if err := a.Start(100); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(1); err == nil || !strings.Contains(err.Error(), "graph steps is running on this GPU: call Wait for it first") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(b.Start(1), b.Wait(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := a.Elapsed(); !errors.Is(err, errCancelled) {
		t.Errorf("a cancelled run has a duration: %v", err)
	}
}

func TestCloseEndsARunningGraph(t *testing.T) {
	c := newCard(t)
	c.kernel = time.Millisecond
	d := openFake(t, c)
	s := newSteps(t, d, 1)
	before := c.kinds()
	g := newGraph(t, d, s)
	if err := errors.Join(g.Start(1_000_000), g.Close(), g.Close()); err != nil {
		t.Error(err)
	}
	if c.busyUntil > c.now {
		t.Errorf("the card is busy for another %v", c.busyUntil-c.now)
	}
	sameKinds(t, c, before)
	if err := errors.Join(g.Start(1), g.Wait(t.Context())); err == nil {
		t.Error("a closed graph runs")
	}
	g = newGraph(t, d, s)
	if err := errors.Join(g.Start(1_000_000), d.Close(), g.Close(), g.Close()); err != nil {
		t.Error(err)
	}
	if err := g.Start(1); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// Whichever call fails, at any time, the graph is freed and the error names the call.
func TestGraphIsFreedAfterFailures(t *testing.T) {
	for _, call := range []string{"cuEventCreate", "cuLaunchKernel", "cuCtxSynchronize", "cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate",
		"cuGraphLaunch", "cuEventRecord", "cuEventElapsedTime", "cuEventQuery"} {
		failed := 0
		for ; failed < 100; failed++ {
			c := newCard(t)
			c.kernel, c.query = 20*time.Millisecond, 50*time.Millisecond
			d := openFake(t, c)
			s := newSteps(t, d, 2)
			before := c.kinds()
			c.fail[call] = failed
			err := replayOnce(d, s)
			delete(c.fail, call)
			sameKinds(t, c, before)
			if err == nil {
				break
			}
			if !strings.HasPrefix(err.Error(), "graph steps: ") && !strings.HasPrefix(err.Error(), "cuEventElapsedTime: ") || !strings.Contains(err.Error(), "PLANTED") {
				t.Errorf("%s: %v", call, err)
			}
		}
		if failed == 0 || failed == 100 {
			t.Errorf("%s failed %d times", call, failed)
		}
	}
}

// replayOnce makes a graph, replays it and closes it.
func replayOnce(d *Device, s *steps) (err error) {
	var g *Graph
	if err := d.Do(func() (err error) { g, err = d.NewGraph("steps", s.queue); return err }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := g.Start(5); err != nil {
		return err
	}
	if err := g.Wait(context.Background()); err != nil {
		return err
	}
	_, err = g.Elapsed()
	return err
}

// An error of f ends the capture, in the first run and while recording.
func TestGraphSaysWhatItsWorkSays(t *testing.T) {
	for fails := 1; fails <= 2; fails++ {
		c := newCard(t)
		d := openFake(t, c)
		s := newSteps(t, d, 1)
		before := c.kinds()
		planted := errors.New("no more tokens")
		err := d.Do(func() error {
			_, err := d.NewGraph("steps", func() error {
				if s.called+1 == fails {
					return planted
				}
				return s.queue()
			})
			return err
		})
		if !errors.Is(err, planted) || !strings.HasPrefix(err.Error(), "graph steps: ") {
			t.Error(err)
		}
		sameKinds(t, c, before)
		if err := replayOnce(d, s); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}

// TestCloseDoesNotWaitForLongReplays: queued replays of a long prompt go on after Close, and the context is freed behind
// them.
func TestCloseDoesNotWaitForLongReplays(t *testing.T) {
	c := newCard(t)
	d, err := open(c.api(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	d.drain = 1
	s := newSteps(t, d, 1)
	var g *Graph
	do(t, d, func() (err error) { g, err = d.NewGraph("steps", s.queue); return err })
	do(t, d, func() error { c.kernel, c.query = 200*time.Second, time.Second; return nil })
	do(t, d, func() (err error) { g.exec, err = d.capture(s.queue); return err })
	if err := errors.Join(g.Start(10), d.Close()); err != nil {
		t.Fatal(err)
	}
	if g.run.over() {
		t.Error("Close has waited for the replays")
	}
	if err := g.Start(1); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	<-d.thread.quit
	if !g.run.over() {
		t.Error("the context was freed before its work had ended")
	}
	c.leaks()
}
