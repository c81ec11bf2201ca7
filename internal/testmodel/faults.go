package testmodel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// ErrFault is the error of a call that [EachFault] lets fail. It is the end of a context.
var ErrFault = fmt.Errorf("this call fails: %w", context.Canceled)

// Faults counts calls that can fail, and lets one of them fail.
type Faults struct {
	mu     sync.Mutex
	calls  int
	fails  int           // number of the call that fails, from 1; 0: none
	stack  []byte        // of the call that failed
	places map[place]int // number of the first call, by the code that calls
}

// place is the innermost frames of a stack.
type place [10]uintptr

// Next returns an [ErrFault] if this call must fail.
func (f *Faults) Next() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls++; f.calls == f.fails {
		f.stack = debug.Stack()
		return ErrFault
	}
	if f.fails == 0 {
		var at place
		runtime.Callers(3, at[:])
		if _, known := f.places[at]; !known {
			f.places[at] = f.calls
		}
	}
	return nil
}

// faulty is a context that reports its end once and then goes on, so that later checks do not hide a lost error.
type faulty struct {
	context.Context
	faults *Faults
}

func (c faulty) Err() error {
	if err := c.faults.Next(); err != nil {
		return err
	}
	return c.Context.Err()
}

// EachFault runs work once without a fault, and then once for each place in the code that checks the context or makes
// another call that can fail. At this place, the first call fails, and later calls succeed again. Work must return the
// error. It must run on one goroutine and do the same each time.
func EachFault(t testing.TB, work func(ctx context.Context, f *Faults) error) {
	t.Helper()
	f := &Faults{places: map[place]int{}}
	if err := work(faulty{t.Context(), f}, f); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	var calls []int
	for _, n := range f.places {
		calls = append(calls, n)
	}
	if len(calls) == 0 {
		t.Fatal("no call can fail")
	}
	slices.Sort(calls)
	for _, n := range calls {
		f := &Faults{fails: n}
		if err := work(faulty{t.Context(), f}, f); !errors.Is(err, ErrFault) {
			t.Errorf("call %d of %d fails, and the error is %v; the call:\n%s", n, f.calls, err, f.stack)
		}
	}
}

// FaultyHessians are Hessians whose reads can fail.
type FaultyHessians struct {
	*Hessians
	Faults *Faults
}

// Fit implements [program.Hessians].
func (h FaultyHessians) Fit(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	if err := h.Faults.Next(); err != nil {
		return sgemm.Matrix{}, err
	}
	return h.Hessians.Fit(ctx, tensor)
}

// Held implements [program.Hessians].
func (h FaultyHessians) Held(ctx context.Context, tensor string) (sgemm.Matrix, error) {
	if err := h.Faults.Next(); err != nil {
		return sgemm.Matrix{}, err
	}
	return h.Hessians.Held(ctx, tensor)
}

// FaultyCost is [TogglesCost] with predictions that can fail.
type FaultyCost struct{ Faults *Faults }

// Energy implements [pass.Cost].
func (c FaultyCost) Energy(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
	if err := c.Faults.Next(); err != nil {
		return cost.Estimate{}, err
	}
	return TogglesCost{}.Energy(ctx, w, role, l)
}

// Lags implements [pass.Cost].
func (c FaultyCost) Lags(ctx context.Context, w cost.Weights, axis int, role cost.Role, l cost.Workload) ([]cost.Lag, error) {
	if err := c.Faults.Next(); err != nil {
		return nil, err
	}
	return TogglesCost{}.Lags(ctx, w, axis, role, l)
}
