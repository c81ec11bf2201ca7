package cuda

import (
	"context"
	"errors"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// fakeGroup has a group with a prepared collective, and a batch on each card.
func fakeGroup(t *testing.T) (*fakeNCCL, *Group, []*Batch) {
	f, devices := newFakeHost(t, 2)
	p := gemm.Problem{M: 16, N: 16, K: 32, Type: arith.BF16}
	x, w := operands(p, 1)
	var batches []*Batch
	for _, d := range devices {
		b, err := d.NewBatch(t.Context(), "product", []Product{{Name: "w", Problem: p, X: x, W: w}}, Options{Repeat: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		batches = append(batches, b)
	}
	g, err := NewGroup(devices)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, g, batches
}

// TestGroupSequence: every segment runs its executions on both cards, and every card has stamps of the first executions, one by one,
// and of the last.
func TestGroupSequence(t *testing.T) {
	f, g, batches := fakeGroup(t)
	if _, err := g.NewSequence(t.Context(), "early", batches); err == nil {
		t.Error("a sequence before Prepare")
	}
	if err := g.Prepare(t.Context(), AllReduce, 4096, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	s, err := g.NewSequence(t.Context(), "work", batches)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stamps(0); err == nil {
		t.Error("stamps before a start")
	}
	segments := []Segment{{GroupProducts, 3}, {GroupCollective, 40}, {GroupBoth, 5}}
	before, launched := f.queued[0], f.cards[0].launched
	if err := s.Start(segments); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.queued[0]-before != 45 || f.queued[1] != f.queued[0] || f.cards[0].launched-launched != 8 {
		t.Errorf("%d collectives and %d products of a card, want 45 and 8", f.queued[0]-before, f.cards[0].launched-launched)
	}
	for card := range 2 {
		stamps, err := s.Stamps(card)
		if err != nil {
			t.Fatal(err)
		}
		last, singly := map[int]int{}, 0
		for i, one := range stamps {
			if i > 0 && one.At < stamps[i-1].At {
				t.Errorf("card %d: stamp %d runs backwards", card, i)
			}
			if one.Segment == 1 && one.Done == last[1]+1 {
				singly++
			}
			last[one.Segment] = one.Done
		}
		if last[0] != 3 || last[1] != 40 || last[2] != 5 || singly < singles {
			t.Errorf("card %d: executions %v, %d of the collective singly", card, last, singly)
		}
	}
	if err := s.Start([]Segment{{groupKinds, 1}}); err == nil {
		t.Error("a segment of no kind")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestGroupSequenceCancelled: after a cancellation, all cards have queued the same number of collectives.
func TestGroupSequenceCancelled(t *testing.T) {
	f, g, batches := fakeGroup(t)
	if err := g.Prepare(t.Context(), AllGather, 4096, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	s, err := g.NewSequence(t.Context(), "work", batches)
	if err != nil {
		t.Fatal(err)
	}
	const many = 1 << 30
	if err := s.Start([]Segment{{GroupBoth, many}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := f.queued; n[0] != n[1] || n[0] > many/2 || len(f.sent) != 0 {
		t.Errorf("cards queued %v collectives, %d have not run", n, len(f.sent))
	}
}
