package cuda

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// TestGroup runs both collectives between pretended cards, alone and beside a product. Results are checked in Prepare.
func TestGroup(t *testing.T) {
	f, devices := newFakeHost(t, 2)
	p := gemm.Problem{M: 16, N: 16, K: 32, Type: arith.BF16}
	x, w := operands(p, 1)
	var batches []*Batch
	for _, d := range devices {
		b, err := d.NewBatch(t.Context(), "product", []Product{{Name: "w", Problem: p, X: x, W: w}}, Options{Repeat: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		batches = append(batches, b)
	}
	for _, op := range []Collective{AllReduce, AllGather} {
		g, err := NewGroup(devices)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Start("work", batches, -1, 1); err == nil || !strings.Contains(err.Error(), "call Prepare first") {
			t.Errorf("before Prepare: %v", err)
		}
		if v := g.Version(); v != "2.27.3" {
			t.Errorf("version %s", v)
		}
		if err := g.Prepare(t.Context(), op, 4096, make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			batches      []*Batch
			set          int
			runs, launch int // collectives and products of each card; without a collective, the cards meet after each of three pieces
		}{{nil, 1, 20, 0}, {batches, -1, 3, 20}, {batches, 0, 20, 20}} {
			before, launched := f.queued[0], f.cards[0].launched
			r, err := g.Start("work", c.batches, c.set, 20)
			if err == nil {
				err = r.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if took, err := r.Elapsed(); err != nil || took < 0 {
				t.Error(took, err)
			}
			if n := f.queued[0] - before; n != c.runs || f.queued[1] != f.queued[0] {
				t.Errorf("%s: %d collectives, want %d; cards queued %v", op, n, c.runs, f.queued)
			}
			if _, ok := g.each[r.work]; !ok {
				t.Errorf("%s: the duration of an execution is not stored", op)
			}
			if n := f.cards[0].launched - launched; n != c.launch {
				t.Errorf("%s: %d products, want %d", op, n, c.launch)
			}
		}
		g.each[work{batches[0], -1}] = 5 * time.Millisecond // five executions in a piece
		before := f.queued[0]
		r, err := g.Start("work", batches, -1, 20)
		if err == nil {
			err = r.Wait(t.Context())
		}
		if n := f.queued[0] - before; err != nil || n != 4 {
			t.Errorf("%s: the cards met %d times, want 4: %v", op, n, err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestGroupCancelled: a cancelled run ends after the same number of collectives on all cards. Otherwise the cards would wait for
// each other for ever.
func TestGroupCancelled(t *testing.T) {
	f, devices := newFakeHost(t, 2)
	g, err := NewGroup(devices)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Prepare(t.Context(), AllReduce, 256, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	const many = 1 << 30
	r, err := g.Start("work", nil, 0, many)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if n := f.queued; n[0] != n[1] || n[0] > many/2 || len(f.sent) != 0 {
		t.Errorf("cards queued %v collectives, %d have not run", n, len(f.sent))
	}
}

// TestGroupChecks: wrong sums are found, and cards of their own contexts are refused.
func TestGroupChecks(t *testing.T) {
	f, devices := newFakeHost(t, 2)
	f.wrong = true
	g, err := NewGroup(devices)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Prepare(t.Context(), AllReduce, 256, make([]byte, 2)); err == nil || !strings.Contains(err.Error(), "small integers are exact") {
		t.Errorf("wrong sums: %v", err)
	}
	if _, err := NewGroup(devices[:1]); err == nil {
		t.Error("a group of one card")
	}
	own := openFake(t, newCard(t))
	if _, err := NewGroup([]*Device{own, own}); err == nil || !strings.Contains(err.Error(), "OpenShared") {
		t.Errorf("cards of their own contexts: %v", err)
	}
}

// TestNoNCCL: the error names the missing library, and is an ErrNoGPU, too.
func TestNoNCCL(t *testing.T) {
	_, err := loadNCCL(fakeLoader{}, machine{func(string) string { return "" }, func(string) ([]string, error) { return nil, nil }, func() (string, error) { return "", errors.New("none") }})
	if !errors.Is(err, ErrNoNCCL) || !errors.Is(err, ErrNoGPU) || !strings.Contains(err.Error(), "libnccl.so.2 (NVIDIA's NCCL) was not found") {
		t.Error(err)
	}
}
