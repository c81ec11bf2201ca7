package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// pacedBatch returns a batch of products of these numbers of rows of weights, which the card runs in 0.4 ms each.
func pacedBatch(t *testing.T, c *card, rows ...int) *Batch {
	t.Helper()
	c.product = 400 * time.Microsecond
	d := openFake(t, c)
	var products []Product
	for _, n := range rows {
		p := gemm.Problem{M: 8, N: n, K: 16, Type: arith.BF16}
		x, w := operands(p, 1)
		products = append(products, Product{Name: "a", Problem: p, X: x, W: w})
	}
	b, err := d.NewBatch(t.Context(), "paced", products, Options{Repeat: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// shares returns the arguments of the launches of the kernel that waits.
func shares(t *testing.T, launches []FakeLaunch, state uint64) (list []float64) {
	t.Helper()
	for _, l := range launches {
		if l.Name != "pace" || l.Argument("state") != Address(state) || l.Threads != [3]uint32{1, 1, 1} {
			t.Errorf("launched %v", l)
		}
		list = append(list, l.Argument("share").(float64))
	}
	return list
}

// An execution is cut into bursts of at least a millisecond, whose shares of the work add up to 1. A run begins with a share of 0.
func TestPacedBatchRunsInBursts(t *testing.T) {
	c := newCard(t)
	b := pacedBatch(t, c, 16, 16, 32)
	if err := b.Pace(t.Context(), 9*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if period := math.Float64frombits(binary.LittleEndian.Uint64(c.region(b.pace.state, 8))); period != 9e6 {
		t.Errorf("a period of %v ns", period)
	}
	// Nine products take 3.6 ms: a burst is 0.28 of them or more. By their work they are 1/12, 1/12, 1/6 and so on.
	execution := []float64{1. / 3, 1. / 3, 1. / 3}
	for _, n := range []int{1, 7} {
		c.launches, c.launched = nil, 0
		if err := errors.Join(b.Start(n), b.Wait(t.Context())); err != nil {
			t.Fatal(err)
		}
		want := append([]float64{0}, slices.Repeat(execution, n)...)
		got := shares(t, c.launches, b.pace.state)
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) || c.launched != 9*n {
			t.Errorf("%d executions: shares %v, %d products", n, got, c.launched)
		}
		c.launches, c.launched = nil, 0
		if err := errors.Join(b.Rest(n), b.Wait(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := shares(t, c.launches, b.pace.state); len(got) != len(want) || c.launched != 0 {
			t.Errorf("gaps of %d executions: shares %v, %d products", n, got, c.launched)
		}
	}
	if err := b.Pace(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.launches = nil
	if err := errors.Join(b.Start(2), b.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	if len(c.launches) != 0 {
		t.Errorf("%d waits in a run that is not paced", len(c.launches))
	}
	if err := b.Rest(1); err == nil {
		t.Error("gaps of a batch that is not paced")
	}
	if _, err := b.Bursts(); err == nil {
		t.Error("bursts of a run that was not paced")
	}
}

// Bursts of cold weights use all copies in turn.
func TestPacedBatchIsCold(t *testing.T) {
	c := newCard(t)
	d := openFake(t, c)
	b := batch(t, d, Options{Cold: true}, gemm.Problem{M: 8, N: 64, K: 64, Type: arith.BF16})
	defer b.Close()
	c.products = nil
	if err := b.Pace(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	seen := map[Address]int{}
	for _, p := range c.products {
		seen[p.W]++
	}
	if len(seen) != b.Copies() || b.Copies() < 2 || len(c.products) != b.Passes() {
		t.Errorf("%d products with %d of %d copies", len(c.products), len(seen), b.Copies())
	}
}

// The kernel's sums become the number and time of the bursts, and the clock of those that stayed on one multiprocessor.
func TestBurstsReadTheCard(t *testing.T) {
	c := newCard(t)
	b := pacedBatch(t, c, 16)
	if err := b.Pace(t.Context(), 2*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Bursts(); err == nil {
		t.Error("bursts before a run")
	}
	if err := errors.Join(b.Start(2), b.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	state := c.region(b.pace.state, paceBytes)
	for i, v := range []uint64{50, 70_000_000, 35_000_000, 63_000_000} { // bursts, busy, counted, countedCycles
		binary.LittleEndian.PutUint64(state[32+8*i:], v)
	}
	if got, err := b.Bursts(); err != nil || got != (Bursts{50, 70 * time.Millisecond, 1800}) {
		t.Errorf("%+v, %v", got, err)
	}
	binary.LittleEndian.PutUint64(state[56:], 1<<63) // a counter that started anew
	if got, err := b.Bursts(); err != nil || got.Clock != 0 || got.Count != 50 {
		t.Errorf("%+v, %v", got, err)
	}
	clear(state)
	if got, err := b.Bursts(); err != nil || got != (Bursts{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A failure leaves nothing on the card, and the next call tries again.
func TestPaceFails(t *testing.T) {
	for _, call := range []string{"cuMemAlloc", "cuLaunchKernel", "cuModuleGetFunction", "cuStreamBeginCapture", "cuGraphInstantiate", "cuCtxSynchronize"} {
		c := newCard(t)
		b := pacedBatch(t, c, 16)
		if _, err := b.device.pacing.compile(t.Context(), b.device, "pace.cu", paceSource); err != nil {
			t.Fatal(err)
		}
		before := c.kinds()
		c.fail[call] = 0
		if err := b.Pace(t.Context(), time.Millisecond); err == nil {
			t.Errorf("%s fails, and the batch is paced", call)
		}
		sameKinds(t, c, before)
		delete(c.fail, call)
		if err := errors.Join(b.Pace(t.Context(), time.Millisecond), b.Start(1), b.Wait(t.Context())); err != nil {
			t.Errorf("after a failure of %s: %v", call, err)
		}
	}
	c := newCard(t)
	b := pacedBatch(t, c, 16)
	c.nvrtc.missing = true
	if err := b.Pace(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if err := b.Pace(t.Context(), time.Millisecond); !errors.Is(err, ErrNoCompiler) {
		t.Error(err)
	}
}
