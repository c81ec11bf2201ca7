package model

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

// ending is a context that is cancelled after a number of calls of Err.
type ending struct {
	context.Context
	left   *atomic.Int64
	cancel func()
}

func (c ending) Err() error {
	if c.left.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// TestInterruptedLoss: an interrupted eval or verify prints the finished losses, and says how to continue.
func TestInterruptedLoss(t *testing.T) {
	source, other := random(t, "llama-tiny", func(string, []byte) {}), random(t, "llama-tiny", func(string, []byte) {})
	file := randomTokens(t, 2)
	next := " % of the work: run the same command again to start over, or choose fewer sequences with --sequences"
	for n := int64(1); n < 5000; n += 1 + n/8 {
		ctx, cancel := context.WithCancel(t.Context())
		left := &atomic.Int64{}
		left.Store(n)
		stdout, err := run(ending{ctx, left, cancel}, "eval", "--tokens", file, source, other)
		cancel()
		switch {
		case err == nil:
			t.Fatalf("eval ended without an error after %d questions, and never with one model finished", n)
		case !errors.Is(err, context.Canceled):
			t.Fatal(err)
		case strings.Contains(string(stdout), source) && !strings.Contains(string(stdout), other):
			if !strings.HasSuffix(err.Error(), next) {
				t.Errorf("ended with %v", err)
			}
			return
		}
	}
}
