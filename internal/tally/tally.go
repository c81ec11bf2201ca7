// Package tally counts expensive work, so that a test can check that a run does it only once. A caller that wants no counts
// passes an ordinary context, and nothing is counted.
package tally

import (
	"context"
	"maps"
	"sync"
)

// Tally has counts by name. It may be used from several goroutines.
type Tally struct {
	mu     sync.Mutex
	counts map[string]int
}

type key struct{}

// With returns a context under which [Add] counts into t.
func With(ctx context.Context, t *Tally) context.Context { return context.WithValue(ctx, key{}, t) }

// Add adds n to the count of a name, such as "forward.Pass", where ctx carries a tally.
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
