package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Measure profiles products and traffic, one to eight in all. Each of them runs from an idle card, as the first segment
// of a launch sequence. If there are several, the next one is the second segment, and the first follows the last.
//
// Errors: [gemm.ErrNotFinite] if operands or results are not finite, and another error if results are wrong; nothing is
// measured in either case. After the first run the result is never nil. If an error ends the measurement, for example
// the context's end, the result holds everything measured until then.
func Measure(ctx context.Context, m measure.Machine, products []cuda.Product, traffic []cuda.Traffic, o Options) (*Result, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if n := len(products) + len(traffic); n < 1 || n > mostKernels {
		return nil, fmt.Errorf("%d products and traffic patterns were given: give 1 to %d in all", n, mostKernels)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	p := newProfiler([]measure.Machine{m}, m.Clock(), o)
	p.products, p.traffic = products, traffic
	all, err := p.measure(ctx, p.prepare)
	if all == nil {
		return nil, err
	}
	return all[0], err
}

// newProfiler returns a profiler for cards that share a clock.
func newProfiler(machines []measure.Machine, clock power.Clock, o Options) *profiler {
	p := &profiler{clock: clock, opt: o.withDefaults(), began: clock.Now(), rng: rand.New(rand.NewPCG(o.Seed, 3))}
	for _, m := range machines {
		p.cards = append(p.cards, &subject{Machine: m, sampler: newSampler(m.Card(), clock), monitor: power.NewMonitor(m.Card(), cmp.Or(o.Self, os.Getpid())), result: newResult(m, p.opt)})
	}
	p.subject, p.phase = p.cards[0], p.rng.Float64()
	return p
}

// measure prepares the work, executes the runs and computes every card's profiles.
func (p *profiler) measure(ctx context.Context, prepare func(context.Context) error) (results []*Result, err error) {
	defer func() {
		if p.launcher != nil && ctx.Err() == nil { // Close waits for the work that the card has queued, and so does the machine's Close
			_ = p.launcher.Close() // Close frees the card's memory; its error does not change the result
		}
	}()
	if err := prepare(ctx); err != nil {
		return nil, err
	}
	failed := p.runs(ctx)
	if failed != nil {
		p.interrupt(failed)
	}
	for i, c := range p.cards {
		p.share(c.result)
		if err := p.profiles(ctx, i); failed == nil {
			failed = err
		}
		results = append(results, c.result)
	}
	return results, failed
}

// share copies the description of the work to the result of another card.
func (p *profiler) share(r *Result) {
	r.Products, r.Stopped, r.Seconds = p.result.Products, p.result.Stopped, p.result.Seconds
}

// profiler is a measurement in progress.
type profiler struct {
	*subject             // the first card; the execution times are measured on it
	cards    []*subject  // all cards
	clock    power.Clock // the common clock of all cards
	products []cuda.Product
	traffic  []cuda.Traffic
	// alone is true if a run has a single segment.
	alone       bool
	opt         Options
	rng         *rand.Rand
	began       time.Duration
	phase       float64       // phase of the first run
	ended       time.Duration // end of the latest work
	launcher    Launcher
	sequences   []*sequence
	interrupted bool
	deadline    time.Time // for the traces, after an interrupt
}

// subject is a card whose sensors are read.
type subject struct {
	measure.Machine
	sampler *sampler
	monitor *power.Monitor
	groups  [][]cuda.ClockReading
	noClock error
	result  *Result
}

// Launcher is a launch sequence that all cards of a measurement execute. Time stamps are those of one card.
type Launcher interface {
	Start(segments []cuda.Segment) error
	Wait(ctx context.Context) error
	Stamps(card int) ([]cuda.Stamp, error)
	Close() error
}

// single is the launcher of one card.
type single struct{ measure.Sequence }

func (s single) Stamps(int) ([]cuda.Stamp, error) { return s.Sequence.Stamps() }

// sequence is a launch sequence: the segments that each of its runs executes.
type sequence struct {
	segments []cuda.Segment
	each     [][]float64   // seconds per execution, by segment and warm-up run
	lasts    time.Duration // duration of the latest run
	after    time.Duration // how long the sensors are read after the work
	runs     [][]*run      // runs, each recorded on all cards
	bursts   []*sequence   // bursts of the first product, in increasing length
}

// mostKernels is the largest number of products and traffic in one measurement.
const mostKernels = 8

const (
	firstReadings = 32 // readings of the card's clock at the start
	laterReadings = 4  // readings of the card's clock after every run
	timings       = 5  // timing runs of each kernel
	timingTime    = 10 * time.Millisecond
)

// Reasons why a measurement ended.
const stoppedByRuns, stoppedByTime, stoppedByContext, stoppedByError = "runs", "time", "cancelled", "failed"

// Limits of the coarser trace that is made after an interrupt.
const (
	graceTime = 400 * time.Millisecond // time limit for all traces together, from the start of the first trace
	graceRuns = 50                     // number of latest runs to use; FinGraV's Table I asks for no more
)

// interrupt ends the measurement. The traces are then computed more coarsely, to save time.
func (p *profiler) interrupt(err error) {
	p.result.Stopped = stoppedByError
	if parallel.Ended(err) {
		p.result.Stopped = stoppedByContext
	}
	p.opt.Step, p.opt.Resamples, p.opt.Resolution = max(p.opt.Step, 10*time.Millisecond), min(p.opt.Resamples, 20), 0
	p.interrupted = true
}

// prepare puts the operands on the card, tests the sensors, times the kernels and warms the card up.
func (p *profiler) prepare(ctx context.Context) error {
	for i := range p.products {
		if err := p.check(ctx, i); err != nil {
			return err
		}
	}
	if err := p.addTraffic(ctx); err != nil {
		return err
	}
	one, err := p.NewSequence(ctx, "profile", p.products, p.traffic)
	if err != nil {
		return err
	}
	p.launcher = single{one}
	return p.timeAll(ctx)
}

// timeAll times every kernel and traffic pattern, and warms the card up.
func (p *profiler) timeAll(ctx context.Context) error {
	p.stage("timing")
	p.readClock(firstReadings)
	for i := range p.result.Products {
		each, err := p.time(ctx, i)
		if err != nil {
			return err
		}
		about := &p.result.Products[i]
		about.Seconds, about.Advised = each, Guide(time.Duration(math.Round(each*float64(time.Second))))
	}
	for i := range p.result.Products {
		p.sequences = append(p.sequences, p.sequence(i))
	}
	return p.warmUp(ctx)
}

// addTraffic appends the traffic after the products. Without products, the self-test of the sensors uses traffic as its
// load.
func (p *profiler) addTraffic(ctx context.Context) (err error) {
	for _, t := range p.traffic {
		about := Product{Name: t.Name}
		if t.Kind == cuda.Copy {
			about.Copied = t.Bytes
		}
		p.result.Products = append(p.result.Products, about)
	}
	if len(p.products) > 0 {
		return nil
	}
	m, err := p.NewMix(ctx, p.traffic[0].Name, nil, p.traffic[:1], cuda.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() == nil {
			err = errors.Join(err, m.Close())
		}
	}()
	return p.selfTest(ctx, p.subject, m)
}

// check compares a product's results with the reference. The first product is also the load of the sensors' self-test.
func (p *profiler) check(ctx context.Context, i int) (err error) {
	product := p.products[i]
	b, err := p.NewBatch(ctx, product.Name, []cuda.Product{product}, cuda.Options{})
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
	about := Product{Name: product.Name, Problem: &product.Problem}
	if len(found) > 0 && found[0].Compared > 0 {
		about.Deviation = &found[0]
	}
	if k := b.Kernels(); len(k) > 0 {
		about.Kernel = &k[0]
	}
	p.result.Products = append(p.result.Products, about)
	if i > 0 {
		return nil
	}
	return p.selfTest(ctx, p.subject, b)
}

// selfTest measures the responses of a card's sensors.
func (p *profiler) selfTest(ctx context.Context, c *subject, load power.Load) error {
	p.stage("self-test")
	meter, err := power.NewMeter(c.Card(), power.Options{Clock: p.clock})
	if err != nil {
		return err
	}
	var test power.SelfTest
	err = power.Undisturbed(ctx, p.clock, func(bool) (err error) {
		test, err = meter.SelfTest(ctx, load)
		return err
	}, func(err error) {
		c.result.warn("the first self-test of the sensors was disturbed (%v), and was repeated after a wait", err)
	})
	switch {
	case err == nil:
		c.result.SelfTest = &test
	case errors.Is(err, power.ErrAbsent):
		c.result.warn("the self-test of the sensors was skipped: %v", err)
	case errors.Is(err, power.ErrCounterStill):
		c.result.warn("the self-test of the sensors was skipped: %v", err)
		c.sampler.absent[stitch.Counter] = "the energy counter does not change" // every run with this counter would be invalid
	default:
		return err
	}
	return nil
}

// time returns the seconds per execution of a product, from the last of several timings. The first timing has four
// executions. Later timings execute the product as often as fits into 10 ms.
func (p *profiler) time(ctx context.Context, product int) (each float64, err error) {
	n := 4
	for range timings {
		t, err := p.execute(ctx, []cuda.Segment{{Product: product, Executions: n}})
		if err != nil {
			return 0, err
		}
		each = max(1e-9, t.length().Seconds()/float64(n))
		n = max(n, executions(timingTime, each))
	}
	return each, nil
}

// execute runs segments and returns their timeline in the card's clock.
func (p *profiler) execute(ctx context.Context, segments []cuda.Segment) (Timeline, error) {
	if err := p.launcher.Start(segments); err != nil {
		return Timeline{}, err
	}
	if err := p.launcher.Wait(ctx); err != nil {
		return Timeline{}, err
	}
	stamps, err := p.launcher.Stamps(0)
	if err != nil {
		return Timeline{}, err
	}
	return timelineOf(stamps, segments)
}

// sequence returns the launch sequence that starts with the given product. The next product, if any, is the second
// segment and takes half as long.
func (p *profiler) sequence(first int) *sequence {
	s := &sequence{segments: []cuda.Segment{{Product: first}}, after: margin}
	if n := len(p.result.Products); n > 1 && !p.alone {
		s.segments = append(s.segments, cuda.Segment{Product: (first + 1) % n})
	}
	s.each = make([][]float64, len(s.segments))
	for i := range s.segments {
		s.segments[i].Executions = executions(p.length(i), p.result.Products[s.segments[i].Product].Seconds)
		s.lasts += p.length(i)
	}
	return s
}

// length returns the length of a run's first or second segment.
func (p *profiler) length(segment int) time.Duration { return p.opt.Length / time.Duration(1+segment) }

// warmUp runs the launch sequences until the die's temperature has changed by less than a degree in some seconds.
func (p *profiler) warmUp(ctx context.Context) error {
	const steady, ago, longest = 1, 5 * time.Second, 45 * time.Second
	enough := min(longest, p.opt.Time/4)
	type reading struct {
		at      time.Duration
		celsius float64
	}
	p.stage("warm-up")
	var readings []reading
	for begin := p.clock.Now(); ; {
		for _, s := range p.sequences {
			if err := p.warmUpRun(ctx, s); err != nil {
				return err
			}
		}
		celsius, err := p.Card().Temperature()
		now := p.clock.Now()
		if err != nil || now-begin > enough {
			return nil
		}
		readings = append(readings, reading{now, celsius})
		for len(readings) > 1 && readings[1].at <= now-ago {
			readings = readings[1:]
		}
		if readings[0].at <= now-ago && math.Abs(celsius-readings[0].celsius) <= steady {
			return nil
		}
	}
}

// warmUpRun executes a run that is not part of the result. It updates the number of executions for the card's clock
// under this load.
func (p *profiler) warmUpRun(ctx context.Context, s *sequence) error {
	all, err := p.undisturbed(ctx, s, 0)
	if err != nil {
		return err
	}
	r := all[0]
	done, before := 0, Seconds(0)
	s.lasts = 0
	for i := range s.segments {
		l := &s.segments[i]
		done += l.Executions
		end := r.timeline.moment(done)
		s.each[i] = append(s.each[i], max(1e-9, (end-before).Seconds()/float64(l.Executions)))
		before = end
		each := stats.Median(s.each[i]) // the median tolerates one outlier
		l.Executions = executions(p.length(i), each)
		s.lasts += time.Duration(math.Round(each * float64(l.Executions) * float64(time.Second)))
	}
	if p.opt.Bursts > 0 {
		s.setBursts(r.timeline)
	}
	return nil
}

// runs executes the launch sequences in random order until each has enough runs. Bursts are spread among the first
// runs.
func (p *profiler) runs(ctx context.Context) error {
	enough, turn := p.opt.Runs, time.Duration(0)
	for i, s := range p.sequences {
		if p.opt.Runs == 0 {
			enough = max(enough, p.result.Products[i].Advised.Runs)
		}
		turn += p.opt.Idle + sensorPeriod + s.lasts
		if p.opt.Bursts > 0 {
			turn += p.opt.Idle + sensorPeriod + burstLengths[len(burstLengths)-1]
		}
	}
	turn += afterBurst
	p.result.Stopped = stoppedByRuns
	begin := p.clock.Now()
	defer func() { p.result.Seconds = (p.clock.Now() - begin).Seconds() }()
	for n := range enough {
		left := p.opt.Time - (p.clock.Now() - p.began)
		if n >= 2 && left < turn {
			p.result.Stopped = stoppedByTime
			return nil
		}
		for _, i := range p.rng.Perm(len(p.sequences)) {
			r, err := p.undisturbed(ctx, p.sequences[i], n+1)
			if err != nil {
				return err
			}
			p.sequences[i].runs = append(p.sequences[i].runs, r)
			if err := p.burst(ctx, p.sequences[i], n); err != nil {
				return err
			}
		}
		left = max(0, p.opt.Time-(p.clock.Now()-p.began))
		each := (p.clock.Now() - begin) / time.Duration(n+1)
		p.tell(Event{Stage: "runs", Done: int64(n + 1), Total: int64(min(enough, n+1+int(left/max(1, each))))})
	}
	return nil
}

// burst executes the burst that follows run number of a sequence; number starts at 0. The burst lengths take turns.
func (p *profiler) burst(ctx context.Context, s *sequence, number int) error {
	lengths := len(s.bursts)
	if number >= lengths*p.opt.Bursts {
		return nil
	}
	b := s.bursts[number%lengths]
	r, err := p.undisturbed(ctx, b, number+1)
	if err == nil {
		b.runs = append(b.runs, r)
	}
	return err
}

// readClock reads every card's clock n times as one group, while the cards are idle. If the first group fails, the
// card's clock counts as unreadable. A later group may be missing.
func (p *profiler) readClock(n int) {
	for _, c := range p.cards {
		early := p.clock.Now() - c.Clock().Now() // the two clocks may have started at different moments
		c.readClock(n, early)
	}
}

func (c *subject) readClock(n int, early time.Duration) {
	if c.noClock != nil {
		return
	}
	var g []cuda.ClockReading
	for range n {
		r, err := c.ReadClock()
		if err != nil {
			if len(c.groups) == 0 {
				c.noClock = err
			}
			return
		}
		r.Before, r.After = r.Before+early, r.After+early
		g = append(g, r)
	}
	c.groups = append(c.groups, g)
}

func (p *profiler) stage(name string) { p.tell(Event{Stage: name}) }

func (p *profiler) tell(e Event) {
	if p.opt.Progress != nil {
		p.opt.Progress(e)
	}
}

// executions returns how many executions of each seconds take the time d.
func executions(d time.Duration, each float64) int {
	return max(1, int(math.Round(d.Seconds()/each)))
}
