package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Servers are the servers of a comparison.
type Servers struct {
	// Baseline is the server of the original model.
	Baseline Server
	// Null serves a copy of the baseline's weights; nil: no null server. Its difference from Baseline shows the error
	// of the run.
	Null *Server
	// Variants are the servers of converted models. Without Variants and Null, only the baseline is measured.
	Variants []Server
}

// all lists the servers: baseline, null, variants.
func (s Servers) all() []Server {
	list := []Server{s.Baseline}
	if s.Null != nil {
		list = append(list, *s.Null)
	}
	return append(list, s.Variants...)
}

// Validate returns an error for invalid addresses, for names that are not unique, and for a variant with the address of
// another server. Null may have the address of Baseline.
func (s Servers) Validate() error {
	seen, at := map[string]bool{}, map[string]string{}
	for i, one := range s.all() {
		if one.Name == "" || seen[one.Name] {
			return fmt.Errorf("server %q at %s: give every server its own name", one.Name, one.URL)
		}
		seen[one.Name] = true
		e, err := newEndpoint(one, Options{})
		if err != nil {
			return err
		}
		address := e.base + "#" + e.model
		if first := at[address]; first != "" && i >= len(s.all())-len(s.Variants) {
			return fmt.Errorf("server %s at %s has the address of server %s: give every server its own address", one.Name, one.URL, first)
		}
		at[address] = one.Name
	}
	return nil
}

// run is a comparison in progress.
type run struct {
	opt      Options
	workload Workload
	cards    []power.Card
	servers  []*endpoint // in the order of Servers.all
	begin    time.Duration
	stage    string
	staged   time.Duration
	steps    int // completed steps of a stage that counts steps
	total    int // number of steps of the stage
}

// Compare measures joules per token of servers that run on the given cards. It measures the servers in turn until every
// interval reaches Options.Precision or Options.Time has passed. No other work should run on the cards.
//
// The result is nil only if nothing could be measured, because options are invalid or a server does not answer. If the
// context ends or a server fails too often in one turn, Compare returns the measurements so far together with the
// error.
func Compare(ctx context.Context, cards []power.Card, servers Servers, o Options) (*Result, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	r, err := newRun(cards, servers, o)
	if err != nil {
		return nil, err
	}
	defer r.opt.client.CloseIdleConnections()
	result := newResult(cards, r.opt)
	if err := r.probe(ctx, servers, result); err != nil {
		return nil, err
	}
	stopped, err := r.measure(ctx, result)
	if result.Stopped = stopped; err != nil {
		result.Stopped = power.StoppedFailed
		if parallel.Ended(err) {
			result.Stopped = power.StoppedCancelled
		}
	}
	result.summarise(servers)
	result.validate()
	return result, err
}

// newRun makes all checks that need no server, and returns a run.
func newRun(cards []power.Card, servers Servers, o Options) (*run, error) {
	if err := errors.Join(o.Validate(), servers.Validate()); err != nil {
		return nil, err
	}
	if len(cards) == 0 {
		return nil, errors.New("a comparison of servers needs at least one card")
	}
	o = o.withDefaults()
	o.clock = power.HostClock()
	o.client = &http.Client{Transport: o.transport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r := &run{opt: o, workload: o.Workload, cards: cards, begin: o.clock.Now()}
	for _, s := range servers.all() {
		e, err := newEndpoint(s, o)
		if err != nil {
			return nil, err
		}
		for _, other := range r.servers {
			if other.base == e.base && other.model == e.model {
				e.copy++
			}
		}
		r.servers = append(r.servers, e)
	}
	return r, nil
}

// probe asks every server for one answer.
func (r *run) probe(ctx context.Context, servers Servers, result *Result) error {
	r.beginStage("servers", len(r.servers))
	for i, s := range servers.all() {
		e := r.servers[i]
		a, err := e.probe(ctx, request{r.workload.prompt(r.opt.Seed, 0, 0), r.workload.OutputTokens})
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("server %s at %s: %w", s.Name, s.URL, err)
		}
		result.Servers = append(result.Servers, ServerInfo{Server: s, Model: e.model, Extras: e.extras,
			Counted: a.output > 0, PromptTokens: a.prompt, PerArrival: float64(r.workload.OutputTokens) / float64(len(a.arrivals))})
		r.steps++
		r.tell()
	}
	return nil
}

// measure fills in the result and returns the reason why the measurement ended.
func (r *run) measure(ctx context.Context, result *Result) (string, error) {
	const idle = 2 * time.Second
	r.beginStage("idle", 0)
	spans, err := watch(ctx, r.cards, r.opt.clock, nil, func(begin, now time.Duration) bool { return now-begin >= idle })
	if err != nil {
		return "", err
	}
	for _, s := range spans {
		result.IdleWatts += s.Watts
	}
	// The first turn of each server heats the card and fills the server's caches of kernels and graphs. It is not
	// counted.
	r.beginStage("warm-up", len(r.servers))
	for _, server := range r.servers {
		if err := r.valid(ctx, server, 0, func(w Window) { result.WarmUp = append(result.WarmUp, w) }); err != nil {
			return "", err
		}
		r.steps++
		r.tell()
	}
	r.beginStage("measure", 0)
	return r.blocks(ctx, result)
}

// blocks measures one block after the other. A new block starts only if the remaining time is at least the duration of
// the last block.
func (r *run) blocks(ctx context.Context, result *Result) (string, error) {
	rng := rand.New(rand.NewPCG(r.opt.Seed, 0))
	begin := r.opt.clock.Now()
	for pass := 1; ; pass += 2 {
		before := result.Seconds
		err := r.block(ctx, r.shuffled(rng), pass, result)
		result.Seconds = (r.opt.clock.Now() - begin).Seconds()
		if err != nil {
			return "", err
		}
		if result.precise(r.opt.Precision) {
			return power.StoppedPrecision, nil
		}
		if result.Seconds+(result.Seconds-before) > r.opt.Time.Seconds() {
			if pass == 1 && result.Seconds > r.opt.Time.Seconds() {
				result.Warnings = append(result.Warnings, fmt.Sprintf("the first block took %.0f s instead of %v, because it is always completed", result.Seconds, r.opt.Time))
			}
			return power.StoppedTime, nil
		}
	}
}

// shuffled returns the servers in random order.
func (r *run) shuffled(rng *rand.Rand) []*endpoint {
	order := slices.Clone(r.servers)
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// block measures the servers in the given order and, as a second pass, in the reverse order. An interrupted block is
// kept and marked as incomplete.
func (r *run) block(ctx context.Context, order []*endpoint, pass int, result *Result) error {
	result.Blocks = append(result.Blocks, Block{})
	b := &result.Blocks[len(result.Blocks)-1]
	for range 2 {
		p := Pass{Windows: []Window{}}
		b.Passes = append(b.Passes, p)
		last := &b.Passes[len(b.Passes)-1]
		for _, server := range order {
			if err := r.valid(ctx, server, pass, func(w Window) { last.Windows = append(last.Windows, w) }); err != nil {
				return err
			}
		}
		slices.Reverse(order)
		pass++
	}
	b.Complete = true
	return nil
}

// valid repeats a turn until its window is valid, and passes every window to keep. A repeated turn uses new prompts,
// because the server may have cached the earlier ones. For the same reason, servers with the same address get different
// prompts.
func (r *run) valid(ctx context.Context, server *endpoint, pass int, keep func(Window)) error {
	var w Window
	for try := range r.opt.Tries {
		if try > 0 { // the server may be restarting
			if err := r.opt.clock.Sleep(ctx, r.opt.Settle); err != nil {
				return err
			}
		}
		var err error
		if w, err = r.turn(ctx, server, pass+try<<20+server.copy<<24); err != nil {
			return err
		}
		if keep(w); w.Invalid == "" {
			return nil
		}
	}
	return fmt.Errorf("%d windows in a row are invalid; reason for the last one: %s", r.opt.Tries, w.Invalid)
}

// beginStage reports the start of a stage.
func (r *run) beginStage(name string, steps int) {
	r.stage, r.staged, r.steps = name, r.opt.clock.Now(), 0
	r.total = steps
	r.tell()
}

// tell reports the run's progress.
func (r *run) tell() {
	if r.opt.Progress == nil {
		return
	}
	e := Event{Stage: r.stage, Done: int64(r.steps), Total: int64(r.total)}
	if r.stage == "measure" {
		e.Done, e.Total = int64(min(r.opt.clock.Now()-r.staged, r.opt.Time)), int64(r.opt.Time)
	}
	r.opt.Progress(e)
}
