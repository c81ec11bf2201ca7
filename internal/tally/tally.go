// Package tally counts expensive work, so that tests can check that the work is done only once. Without a tally in
// the context, nothing is counted.
package tally

import (
	"context"
	"maps"
	"sync"
)

// Tally has counts by name. Several goroutines may use it.
type Tally struct {
	mu     sync.Mutex
	counts map[string]int
}

type key struct{}

// With returns a context under which [Add] counts into t.
func With(ctx context.Context, t *Tally) context.Context { return context.WithValue(ctx, key{}, t) }

// Add adds n to the count of a name, such as "forward.Pass", if ctx has a tally.
func Add(ctx context.Context, name string, n int) {
	t, ok := ctx.Value(key{}).(*Tally)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[name] += n
}

// Counts returns a copy of all counts.
func (t *Tally) Counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}
