package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// turn measures one window of a server. If a request fails, the reason is in the window's Invalid. The error is a
// failure of the cards or of the context.
func (r *run) turn(ctx context.Context, server *endpoint, pass int) (Window, error) {
	begin := r.opt.clock.Now()
	w := Window{Server: server.name, Begin: (begin - r.begin).Seconds()}
	r.opt.client.CloseIdleConnections() // servers close idle connections after some seconds, possibly while a connection is reused
	l, inner := startLoad(ctx, server, r.workload, r.opt.Seed, pass)
	defer l.abandon()
	spans, t0, t1, err := r.steady(inner, l)
	if err == nil {
		err = l.drain(inner)
	}
	switch {
	case ctx.Err() != nil:
		return w, ctx.Err()
	case inner.Err() != nil: // a request failed
		w.Invalid = context.Cause(inner).Error()
		return w, nil
	case err != nil:
		return w, err
	}
	w.Begin = (t0 - r.begin).Seconds()
	w.count(l.requests, t0, t1)
	if w.OutputTokens == 0 {
		return Window{Server: server.name, Begin: w.Begin, Invalid: fmt.Sprintf("server %s: no token arrived in the window", server.name)}, nil
	}
	w.weigh(spans)
	return w, nil
}

// steady waits until a load is steady. It then measures the cards until the window is long enough and each slot has
// produced whole answers. It returns the window's times by the first card.
func (r *run) steady(ctx context.Context, l *load) (spans []power.Span, t0, t1 time.Duration, err error) {
	settled := r.opt.clock.Now() + r.opt.Settle
	select {
	case <-l.full:
	case <-ctx.Done():
		return nil, 0, 0, ctx.Err()
	}
	if err := r.opt.clock.Sleep(ctx, settled-r.opt.clock.Now()); err != nil {
		return nil, 0, 0, err
	}
	rounds := rounds{load: l, least: r.opt.Window}
	spans, err = watch(ctx, r.cards, r.opt.clock, rounds.open, func(begin, now time.Duration) bool {
		t0, t1 = begin, now
		r.tell()
		return rounds.enough(begin, now)
	})
	return spans, t0, t1, err
}

// rounds decides when a window begins and ends. In a round every slot produces as many tokens as one answer has. A
// window of whole rounds has prompts and answers in the right proportion, even if all slots are in step.
type rounds struct {
	load  *load
	least time.Duration
	first float64 // number of tokens before the window
	whole float64 // number of complete rounds
}

// open reports whether tokens have arrived since the last step of the counter. Without new tokens, all slots may be
// processing a prompt. Rounds are counted in tokens, so a window that opened then would miss a part of a prompt.
func (r *rounds) open(time.Duration) bool {
	tokens := r.load.tokens()
	arrived := r.first > 0 && tokens > r.first
	r.first = tokens
	return arrived
}

// enough reports whether the window is long enough and a round has ended since the last step of the counter.
func (r *rounds) enough(begin, now time.Duration) bool {
	round := float64(r.load.workload.Concurrency * r.load.workload.OutputTokens)
	before := r.whole
	r.whole = math.Floor((r.load.tokens() - r.first) / round)
	return now-begin >= r.least && r.whole > before
}

// watch measures all cards at the same time. open and enough are called for the first card. The other cards begin and
// end at their next step.
func watch(ctx context.Context, cards []power.Card, clock power.Clock, open func(now time.Duration) bool, enough func(begin, now time.Duration) bool) ([]power.Span, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	spans, errs := make([]power.Span, len(cards)), make([]error, len(cards))
	var begun, over atomic.Bool
	begins := func(now time.Duration) bool {
		if open == nil || open(now) {
			begun.Store(true)
		}
		return begun.Load()
	}
	ends := func(begin, now time.Duration) bool {
		if enough(begin, now) {
			over.Store(true)
		}
		return over.Load()
	}
	var all sync.WaitGroup
	for i, card := range cards {
		if i == 1 { // the other cards follow the first card
			begins = func(time.Duration) bool { return begun.Load() }
			ends = func(_, _ time.Duration) bool { return over.Load() }
		}
		begins, ends := begins, ends
		all.Go(func() {
			if spans[i], errs[i] = power.Watch(ctx, card, clock, begins, ends); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	return spans, errors.Join(errs...)
}
