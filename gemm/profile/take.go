package profile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Take profiles a product; of two products each, and each right after the other. Operands and results
// that are not finite are a [gemm.ErrNotFinite], results that are wrong an error; nothing is measured
// then. Once the runs have begun the result is never nil: where it comes with an error, as when the
// context ends, it holds what was found until then.
func Take(ctx context.Context, m measure.Machine, products []cuda.Product, o Options) (*Result, error) {
	if len(products) < 1 || len(products) > 2 {
		return nil, fmt.Errorf("%d products: a profile is of one, or of two that run after each other", len(products))
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &taking{
		machine: m, clock: m.Clock(), products: products, opt: o.withDefaults(), began: m.Clock().Now(),
		rng: rand.New(rand.NewPCG(o.Seed, 3)), watcher: newWatcher(m.Card(), m.Clock()),
	}
	t.phase, t.result = t.rng.Float64(), newResult(m, t.opt)
	defer func() {
		if t.train != nil && ctx.Err() == nil { // closing waits for what the card has still queued; the machine's Close does too
			_ = t.train.Close() // memory on a card that goes back in any case; the result stands
		}
	}()
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	failed := t.runs(ctx)
	if failed != nil {
		t.breakOff(failed)
	}
	if err := t.profiles(ctx); failed == nil {
		failed = err
	}
	return t.result, failed
}

// breakOff ends the measurement. What was read is worth a moment more, and a coarser curve of some of it.
func (t *taking) breakOff(err error) {
	t.result.Stopped = stoppedBy(err)
	t.opt.Step, t.opt.Resamples, t.opt.Resolution = max(t.opt.Step, 10*time.Millisecond), min(t.opt.Resamples, 20), 0
	t.broken = true
}

const (
	// mercy is how long the curves of an interrupted profile may take, from the first one on.
	mercy = 400 * time.Millisecond
	// fewRuns of the latest make them: as many as FinGraV found enough.
	fewRuns = 50
)

// How a profile ends.
const stoppedByRuns, stoppedByTime = "runs", "time"

func stoppedBy(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "cancelled"
	}
	return "failed"
}

// taking is a profile under way.
type taking struct {
	machine  measure.Machine
	clock    power.Clock
	products []cuda.Product
	opt      Options
	rng      *rand.Rand
	began    time.Duration
	phase    float64 // of the first run
	watcher  *watcher
	train    measure.Train
	groups   [][]cuda.ClockReading
	noClock  error
	orders   []*order
	broken   bool      // off
	until    time.Time // curves must be done, where it was
	result   *Result
}

// order is what all runs of a kind do.
type order struct {
	legs  []cuda.Leg
	each  [][]float64   // of each leg: the seconds that an execution took, in each rehearsal
	lasts time.Duration // as long as its latest run did
	runs  []*run
}

const (
	firstReadings = 32 // of the card's clock, at the start
	laterReadings = 4  // after every run
	timings       = 5  // of each kernel
	timingTime    = 10 * time.Millisecond
)

// prepare puts everything on the card, and finds out how its sensors and the kernels behave.
func (t *taking) prepare(ctx context.Context) error {
	for i := range t.products {
		if err := t.check(ctx, i); err != nil {
			return err
		}
	}
	var err error
	if t.train, err = t.machine.NewTrain(ctx, "profile", t.products); err != nil {
		return err
	}
	t.stage("timing")
	t.readClock(firstReadings)
	for i := range t.products {
		each, err := t.time(ctx, i)
		if err != nil {
			return err
		}
		p := &t.result.Products[i]
		p.Seconds, p.Advised = each, Guide(seconds(each))
	}
	for i := range t.products {
		t.orders = append(t.orders, t.order(i))
	}
	return t.warmUp(ctx)
}

// check looks at a product's results; with the first one the sensors are tested, too.
func (t *taking) check(ctx context.Context, i int) (err error) {
	p := t.products[i]
	b, err := t.machine.NewBatch(ctx, p.Name, []cuda.Product{p}, cuda.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() == nil {
			err = errors.Join(err, b.Close())
		}
	}()
	found, err := b.Check(ctx)
	if err != nil {
		return err
	}
	about := Product{Name: p.Name, Problem: p.Problem}
	if len(found) > 0 && found[0].Compared > 0 {
		about.Deviation = &found[0]
	}
	if k := b.Kernels(); len(k) > 0 {
		about.Kernel = &k[0]
	}
	t.result.Products = append(t.result.Products, about)
	if i > 0 {
		return nil
	}
	t.stage("self-test")
	meter, err := power.NewMeter(t.machine.Card(), power.Options{Clock: t.clock})
	if err != nil {
		return err
	}
	switch test, err := meter.SelfTest(ctx, b); {
	case err == nil:
		t.result.SelfTest = &test
	case errors.Is(err, power.ErrAbsent) || errors.Is(err, power.ErrCounterStill):
		t.result.warn("no self-test: %v", err)
	default:
		return err
	}
	return nil
}

// time executes a product as often as a kernel is to be timed, the later times as often as 10 ms have
// room for, and returns the seconds that one took in the end.
func (t *taking) time(ctx context.Context, product int) (each float64, err error) {
	n := 4
	for range timings {
		p, err := t.stamped(ctx, []cuda.Leg{{Product: product, Executions: n}})
		if err != nil {
			return 0, err
		}
		each = max(1e-9, p.At[len(p.At)-1].Seconds()/float64(n))
		n = max(n, executions(timingTime, each))
	}
	return each, nil
}

// stamped runs legs, and returns their progress by the card's clock.
func (t *taking) stamped(ctx context.Context, legs []cuda.Leg) (Progress, error) {
	if err := t.train.Start(legs); err != nil {
		return Progress{}, err
	}
	if err := t.train.Wait(ctx); err != nil {
		return Progress{}, err
	}
	stamps, err := t.train.Stamps()
	if err != nil {
		return Progress{}, err
	}
	return progressOf(stamps, legs)
}

// order begins with a product and goes on, where there is another one, with that for half as long.
func (t *taking) order(first int) *order {
	o := &order{legs: []cuda.Leg{{Product: first}}}
	if len(t.products) > 1 {
		o.legs = append(o.legs, cuda.Leg{Product: 1 - first})
	}
	o.each = make([][]float64, len(o.legs))
	for i := range o.legs {
		o.legs[i].Executions = executions(t.length(i), t.result.Products[o.legs[i].Product].Seconds)
		o.lasts += t.length(i)
	}
	return o
}

// length of a run's first or second leg.
func (t *taking) length(leg int) time.Duration { return t.opt.Length / time.Duration(1+leg) }

// warmUp rehearses until the die is as warm as runs make it: within a degree of what it was some
// seconds ago.
func (t *taking) warmUp(ctx context.Context) error {
	const steady, ago, longest = 1, 5 * time.Second, 45 * time.Second
	enough := min(longest, t.opt.Time/4)
	type look struct {
		at      time.Duration
		celsius float64
	}
	t.stage("warm-up")
	var looks []look
	for begin := t.clock.Now(); ; {
		for _, o := range t.orders {
			if err := t.rehearse(ctx, o); err != nil {
				return err
			}
		}
		celsius, err := t.machine.Card().Temperature()
		now := t.clock.Now()
		if err != nil || now-begin > enough {
			return nil
		}
		looks = append(looks, look{now, celsius})
		for len(looks) > 1 && looks[1].at <= now-ago {
			looks = looks[1:]
		}
		if looks[0].at <= now-ago && math.Abs(celsius-looks[0].celsius) <= steady {
			return nil
		}
	}
}

// rehearse is a run that does not count. It says how many executions the length really has, at the
// clock that a load of that length has.
func (t *taking) rehearse(ctx context.Context, o *order) error {
	r, err := t.run(ctx, o, 0)
	if err != nil {
		return err
	}
	done, before := 0, time.Duration(0)
	o.lasts = 0
	for i := range o.legs {
		l := &o.legs[i]
		done += l.Executions
		end := momentOf(r.progress, done)
		o.each[i] = append(o.each[i], max(1e-9, (end-before).Seconds()/float64(l.Executions)))
		before = end
		each := stats.Median(o.each[i]) // one rehearsal may be an outlier
		l.Executions = executions(t.length(i), each)
		o.lasts += seconds(each * float64(l.Executions))
	}
	return nil
}

// runs takes turns among the orders, in random succession, until there are enough of each.
func (t *taking) runs(ctx context.Context) error {
	enough, turn := t.opt.Runs, time.Duration(0)
	for i, o := range t.orders {
		if t.opt.Runs == 0 {
			enough = max(enough, t.result.Products[i].Advised.Runs)
		}
		turn += t.opt.Idle + phase + lead + o.lasts
	}
	t.result.Stopped = stoppedByRuns
	begin := t.clock.Now()
	defer func() { t.result.Seconds = (t.clock.Now() - begin).Seconds() }()
	for n := range enough {
		left := t.opt.Time - (t.clock.Now() - t.began)
		if n >= 2 && left < turn {
			t.result.Stopped = stoppedByTime
			return nil
		}
		for _, i := range t.rng.Perm(len(t.orders)) {
			r, err := t.run(ctx, t.orders[i], n+1)
			if err != nil {
				return err
			}
			t.orders[i].runs = append(t.orders[i].runs, r)
		}
		if t.opt.Events.Run != nil {
			left := max(0, t.opt.Time-(t.clock.Now()-t.began))
			each := (t.clock.Now() - begin) / time.Duration(n+1)
			t.opt.Events.Run(n+1, min(enough, n+1+int(left/max(1, each))))
		}
	}
	return nil
}

// readClock takes a group of readings of the card's clock, which is idle now. Without a first group
// the card has no clock for us; a later one may be missing.
func (t *taking) readClock(n int) {
	if t.noClock != nil {
		return
	}
	var g []cuda.ClockReading
	for range n {
		r, err := t.machine.ReadClock()
		if err != nil {
			if len(t.groups) == 0 {
				t.noClock = err
			}
			return
		}
		g = append(g, r)
	}
	t.groups = append(t.groups, g)
}

func (t *taking) stage(name string) {
	if t.opt.Events.Stage != nil {
		t.opt.Events.Stage(name)
	}
}

// executions that last for d, at so many seconds each.
func executions(d time.Duration, each float64) int {
	return max(1, int(math.Round(d.Seconds()/each)))
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
