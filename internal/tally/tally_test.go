package tally_test

import (
	"context"
	"maps"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/tally"
)

// TestCounts: work under a context, and under contexts derived from it, is counted by name. Other work is not
// counted.
func TestCounts(t *testing.T) {
	var counts tally.Tally
	ctx := tally.With(t.Context(), &counts)
	below, cancel := context.WithCancel(ctx)
	defer cancel()
	tally.Add(ctx, "pass", 1)
	tally.Add(below, "pass", 2)
	tally.Add(ctx, "factor", 1)
	tally.Add(t.Context(), "pass", 100)
	if want, got := map[string]int{"pass": 3, "factor": 1}, counts.Counts(); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}
