package serve

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// load keeps a fixed number of requests in flight on one server.
type load struct {
	server   *endpoint
	workload Workload
	seed     uint64
	pass     int
	cancel   context.CancelCauseFunc
	slots    sync.WaitGroup
	full     chan struct{} // closed when every slot has finished its first request
	ended    chan struct{} // closed when no request is in flight any longer

	mu       sync.Mutex
	closing  bool // set when no more requests may start
	next     int  // number of the next request
	firsts   int  // number of slots that have finished their first request
	arrived  int  // number of parts of answers that have arrived
	finished struct{ arrivals, tokens int }
	requests []*answer // all requests, in the order of their start
}

// startLoad starts requests on a server. They end when the context ends or close is called. If a request fails, the
// returned context ends, with the failure as its cause.
func startLoad(ctx context.Context, server *endpoint, w Workload, seed uint64, pass int) (*load, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &load{server: server, workload: w, seed: seed, pass: pass, cancel: cancel,
		full: make(chan struct{}), ended: make(chan struct{})}
	for i := range w.Concurrency {
		l.slots.Go(func() {
			if err := l.slot(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	go func() {
		l.slots.Wait()
		close(l.ended)
	}()
	return l, ctx
}

// slot sends one request after the other. The first request is shortened by a share that depends on the slot.
func (l *load) slot(ctx context.Context, slot int) error {
	n := l.workload.OutputTokens
	for first := true; ; first = false {
		tokens := n
		if first {
			tokens = max(2, n*(slot+1)/l.workload.Concurrency)
		}
		number, a, ok := l.begin()
		if !ok {
			return nil
		}
		prompt := l.workload.prompt(l.seed, l.pass, number)
		got, err := l.server.complete(ctx, request{prompt, tokens}, func(at time.Duration) { l.arrive(a, at) })
		if err == nil {
			err = got.complaint(tokens)
		}
		if err != nil {
			return fmt.Errorf("server %s, request %d: %w", l.server.name, number+1, err)
		}
		fill(&got.prompt, len(prompt.Tokens))
		fill(&got.output, len(got.arrivals))
		l.finish(a, got, first)
	}
}

func (l *load) begin() (number int, a *answer, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return 0, nil, false
	}
	number, a = l.next, &answer{start: l.server.clock.Now()}
	l.next++
	l.requests = append(l.requests, a)
	return number, a, true
}

func (l *load) arrive(a *answer, at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.arrivals = append(a.arrivals, at)
	l.arrived++
}

func (l *load) finish(a *answer, got answer, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*a = got
	l.finished.arrivals += len(got.arrivals)
	l.finished.tokens += got.output
	if first {
		if l.firsts++; l.firsts == l.workload.Concurrency {
			close(l.full)
		}
	}
}

// tokens estimates the number of output tokens so far. For a request in flight it multiplies the number of arrivals by
// the tokens per arrival of completed requests.
func (l *load) tokens() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finished.arrivals == 0 {
		return float64(l.arrived)
	}
	return float64(l.arrived) * float64(l.finished.tokens) / float64(l.finished.arrivals)
}

// drain stops starting requests and waits for the requests in flight.
func (l *load) drain(ctx context.Context) error {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	<-l.ended
	return context.Cause(ctx)
}

// abandon cancels all requests. It is idempotent.
func (l *load) abandon() {
	l.cancel(context.Canceled)
	<-l.ended
}
