package cuda

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// Executions and gaps together last the requested time, and so do gaps alone. Without gaps the waiting kernel takes little time.
// The clock during the products is plausible.
func TestGPUBursts(t *testing.T) {
	d := openGPU(t)
	b := batch(t, d, Options{}, gemm.Problem{M: 4096, N: 4096, K: 4096, Type: arith.BF16})
	defer b.Close()
	const n = 25
	timed := func(start func(int) error) time.Duration {
		if err := errors.Join(start(n), b.Wait(t.Context())); err != nil {
			t.Fatal(err)
		}
		took, err := b.Elapsed()
		if err != nil {
			t.Fatal(err)
		}
		return took / n
	}
	pace := func(every time.Duration) {
		if err := b.Pace(t.Context(), every); err != nil {
			t.Fatal(err)
		}
	}
	bursts := func() Bursts {
		found, err := b.Bursts()
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	near := func(what string, got, want time.Duration, share float64) {
		t.Logf("%s: %v, want %v", what, got, want)
		if math.Abs(got.Seconds()/want.Seconds()-1) > share {
			t.Errorf("%s: %v, want %v within %v %%", what, got, want, 100*share)
		}
	}

	timed(b.Start) // at full clock
	steady, every := timed(b.Start), 4*b.replay
	pace(every)
	near("an execution and its gaps", timed(b.Start), every, 0.02)
	work := bursts()
	near("the bursts of an execution", work.Busy/n, steady, 0.3)
	near("gaps alone", timed(b.Rest), every, 0.02)
	gaps := bursts()
	t.Logf("%d bursts at %.0f MHz; between two waits %v", work.Count, work.Clock, gaps.Busy/time.Duration(gaps.Count))
	if work.Count != gaps.Count || gaps.Busy > work.Busy/50 {
		t.Errorf("gaps alone: %+v, with the work %+v", gaps, work)
	}
	if work.Clock < 300 || work.Clock > 4000 {
		t.Errorf("a clock of %v MHz", work.Clock)
	}
	pace(time.Nanosecond)
	near("an execution without gaps", timed(b.Start), steady, 0.03)
}
