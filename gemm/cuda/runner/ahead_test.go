package runner

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
)

// All numbers are used in their order, and no more than so many are ahead of the one in use.
func TestAhead(t *testing.T) {
	const n, most = 50, 4
	var used []int
	var made, done atomic.Int64
	err := ahead(t.Context(), n, most, func(_ context.Context, i int) (int, error) {
		if at := done.Load(); int64(i) > at+most {
			t.Errorf("number %d is made while %d are done", i, at)
		}
		made.Add(1)
		return 2 * i, nil
	}, func(i, v int) error {
		if v != 2*i {
			t.Errorf("number %d is %d", i, v)
		}
		used = append(used, i)
		done.Add(1)
		return nil
	})
	if err != nil || !slices.IsSorted(used) || len(used) != n || made.Load() != n {
		t.Errorf("%v were used, error %v", used, err)
	}
}

// The first error in order is returned, after all that runs has ended.
func TestAheadFails(t *testing.T) {
	bad := errors.New("bad")
	for _, where := range []string{"produce", "use"} {
		var running atomic.Int64
		err := ahead(t.Context(), 20, 4, func(ctx context.Context, i int) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			switch {
			case where == "produce" && i == 5:
				return 0, bad
			case i > 5: // until the error ends it
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return i, nil
		}, func(i, _ int) error {
			if where == "use" && i == 5 {
				return bad
			}
			return nil
		})
		if err != bad || running.Load() != 0 {
			t.Errorf("%s: error %v, %d still run", where, err, running.Load())
		}
	}
}
