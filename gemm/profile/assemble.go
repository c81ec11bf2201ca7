package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// profiles computes a card's profile for each launch sequence.
func (p *profiler) profiles(ctx context.Context, card int) error {
	p.stage("stitch")
	c := p.cards[card]
	p.alignClocks(card)
	var failed error
	for _, s := range p.sequences {
		one, err := p.profile(ctx, s, card)
		c.result.Profiles = append(c.result.Profiles, one)
		failed = cmp.Or(failed, err)
	}
	c.result.interleave()
	c.warnings(p.opt.Self)
	return failed
}

// alignClocks converts all times of a card's runs to times since the start of the work, by the host's clock.
func (p *profiler) alignClocks(card int) {
	c := p.cards[card]
	sync, err := synchronise(c.groups)
	if c.noClock != nil {
		err = c.noClock
	}
	if err != nil {
		c.result.warn("the card's clock cannot be used (%v): times are counted from the host's launch of the work, slightly before the work starts", err)
	}
	c.result.Sync = sync
	var launch []float64
	for _, s := range p.sequences {
		for _, r := range s.everyRun(card) {
			begin := r.launched
			if sync != nil {
				begin = sync.Host(r.first)
				for i, at := range r.timeline.At {
					r.timeline.At[i] = Seconds(sync.Host(r.first+at.Duration()) - begin)
				}
				launch = append(launch, (begin - r.launched).Seconds())
			}
			for i := range r.readings {
				r.readings[i].At -= Seconds(begin)
				if r.readings[i].Sensor == stitch.Counter {
					r.readings[i].Since -= Seconds(begin)
				}
			}
			for i := range r.states {
				r.states[i].at -= begin
			}
		}
	}
	if sync == nil || len(launch) == 0 {
		return
	}
	sync.Launch = stitch.Of(stats.Median(launch))
	if slack := 2*sync.Residual + ms; sync.Launch < -slack {
		c.result.warn("the clocks of card and host disagree: the work seems to begin %v before its launch; times near the start have an error of this size", -sync.Launch)
	}
}

// of returns a card's runs.
func (s *sequence) of(card int) (own []*run) {
	for _, all := range s.runs {
		own = append(own, all[card])
	}
	return own
}

// everyRun returns a card's runs and bursts.
func (s *sequence) everyRun(card int) []*run {
	all := s.of(card)
	for _, b := range s.bursts {
		all = append(all, b.of(card)...)
	}
	return all
}

// profile computes a card's profile from the golden runs of a launch sequence.
func (p *profiler) profile(ctx context.Context, s *sequence, card int) (Profile, error) {
	runs, result := s.of(card), p.cards[card].result
	one := Profile{Taken: len(s.runs), Advised: result.Products[s.segments[0].Product].Advised.Runs, Runs: []Run{}}
	golden := s.goldenRuns(runs)
	for _, r := range runs {
		one.Runs = append(one.Runs, r.summary(s))
		one.LateReadings += r.late
	}
	one.countBursts(s, card)
	if one.Golden = len(golden); len(golden) == 0 {
		return one, fmt.Errorf("%w: there are no golden runs to compute a trace from: take more runs", stitch.ErrTooFew)
	}
	timelines := map[int]Timeline{}
	for _, r := range golden {
		timelines[r.run] = r.timeline
	}
	one.setTimelines(timelines)
	one.setSegments(s, result.Products)
	one.usual = one.mean.atEvenSpeed(one.Segments)
	for _, r := range golden {
		r.align(one.mean)
		one.readings = append(one.readings, r.readings...)
		one.throttle |= r.reasons()
	}
	one.Throttle = one.throttle.Names()
	one.States = meanStates(golden, one.End()+Seconds(margin))
	if p.opt.Readings {
		one.Readings, one.Timelines = one.readings, one.timelines
	}
	err := p.stitch(ctx, &one, result.SelfTest)
	if errors.Is(err, stitch.ErrTooFew) {
		err = fmt.Errorf("trace of %s: %w: take more or longer runs", plural(len(golden), "golden run"), err)
	}
	if one.Trace == nil {
		return one, err
	}
	one.evaluate(result.Products, p.opt)
	return one, err
}

// setTimelines keeps the golden runs' timelines and their mean.
func (p *Profile) setTimelines(timelines map[int]Timeline) {
	var all []Timeline
	for _, run := range slices.Sorted(maps.Keys(timelines)) {
		all = append(all, timelines[run])
	}
	p.mean, p.timelines = meanTimeline(all), timelines
}

// setSegments fills in the segments of the mean run.
func (p *Profile) setSegments(s *sequence, products []Product) {
	done, begin := 0, Seconds(0)
	for _, l := range s.segments {
		done += l.Executions
		end := p.mean.moment(done)
		p.Segments = append(p.Segments, Segment{Product: l.Product, Name: products[l.Product].Name, Executions: l.Executions, Begin: begin, End: end})
		begin = end
	}
}

// evaluate fills in the results that are computed from the trace.
func (p *Profile) evaluate(products []Product, o Options) {
	first := p.Segments[0]
	margin := products[first.Product].Advised.Margin
	p.Steady = FindSteady(p.Trace, p.mean.part(0, first.Executions), margin, o.Tolerance)
	p.Steady.SSP.explain(cappedShare(p.States, first.End))
	p.Density = p.density(products[first.Product].Advised)
	p.Milestones = p.milestones()
	p.Execution = withinExecution(p)
}

// stitch computes the trace from a profile's readings. If the context has ended, stitch returns the context's error and
// still sets a coarser trace if time allows.
func (p *profiler) stitch(ctx context.Context, one *Profile, test *power.SelfTest) (err error) {
	o := one.stitchOptions(p.opt, test)
	if !p.interrupted {
		one.Trace, one.Sensors, err = stitch.Readings(ctx, one.readings, o)
		if err == nil || ctx.Err() == nil {
			return err
		}
		p.interrupt(err)
	}
	if p.deadline.IsZero() {
		p.deadline = time.Now().Add(graceTime)
	}
	grace, end := context.WithDeadline(context.WithoutCancel(ctx), p.deadline)
	defer end()
	// The quickest options: no speed law, and no limit on the resolution.
	o.Step, o.Resamples, o.Resolution, o.Speed = Seconds(p.opt.Step), p.opt.Resamples, Seconds(time.Hour), nil
	one.Trace, one.Sensors, err = stitch.Readings(grace, ofLatestRuns(one.readings, graceRuns), o)
	return cmp.Or(ctx.Err(), err)
}

func (p *Profile) stitchOptions(o Options, test *power.SelfTest) stitch.Options {
	breaks := []Seconds{0}
	for _, s := range p.Segments {
		breaks = append(breaks, s.End)
	}
	return stitch.Options{
		From: -Seconds(margin), To: p.End() + Seconds(margin), Step: Seconds(o.Step), Breaks: breaks, Sensors: testedSensors(test), Resolution: Seconds(o.Resolution),
		Seed: o.Seed, Resamples: o.Resamples, Speed: p.speed,
	}
}

// speed returns a run's speed between two moments of the mean run, relative to the segment's mean speed. It is 1 for an
// unknown run.
func (p *Profile) speed(run int, from, to Seconds) float64 {
	own := p.timelines[run]
	if len(own.At) == 0 {
		return 1
	}
	return float64(p.mean.align(p.usual, to)-p.mean.align(p.usual, from)) /
		float64(p.mean.align(own, to)-p.mean.align(own, from))
}

// ofLatestRuns returns the readings of the latest runs. Readings must be in the order of runs.
func ofLatestRuns(readings []stitch.Reading, runs int) []stitch.Reading {
	for i, r := range readings {
		if r.Run > readings[len(readings)-1].Run-runs {
			return readings[i:]
		}
	}
	return nil
}

// goldenRuns marks and returns the card's runs that are golden in every segment.
func (s *sequence) goldenRuns(runs []*run) (golden []*run) {
	var alike []*run // runs with the same entries in Done as the first run
	for _, r := range runs {
		if slices.Equal(r.timeline.Done, runs[0].timeline.Done) {
			r.golden = true
			alike = append(alike, r)
		}
	}
	from := 0
	for _, l := range s.segments {
		var parts []Timeline
		for _, r := range alike {
			parts = append(parts, r.timeline.part(from, from+l.Executions))
		}
		for i, is := range Golden(parts) {
			alike[i].golden = alike[i].golden && is
		}
		from += l.Executions
	}
	for _, r := range alike {
		if r.golden {
			golden = append(golden, r)
		}
	}
	return golden
}

// testedSensors returns the sensor windows that the self-test measured. The self-test observes one power step, at one
// phase of the sensor, so its window includes the sensor's update period. A window not much longer than that period is
// treated as unknown.
func testedSensors(test *power.SelfTest) (known []stitch.Sensor) {
	if test == nil {
		return nil
	}
	for _, s := range []struct {
		name     string
		response *power.Response
	}{{stitch.Instant, test.Instant}, {stitch.Average, test.Average}} {
		if r := s.response; r != nil && r.Window > 4*r.Update {
			known = append(known, stitch.Sensor{Name: s.name, Window: stitch.Of(r.Window - r.Update)})
		}
	}
	return known
}

// align shifts a run's readings to the times at which the mean run had done the same number of executions.
func (r *run) align(mean Timeline) {
	for i := range r.readings {
		a := &r.readings[i]
		a.At = r.timeline.align(mean, a.At)
		if a.Sensor == stitch.Counter {
			a.Since = r.timeline.align(mean, a.Since)
		}
	}
}

func (r *run) summary(s *sequence) Run {
	n := s.segments[0].Executions
	sum := Run{Begin: r.launched.Seconds(), Seconds: r.timeline.moment(n).Seconds() / float64(n), Golden: r.golden, Readings: len(r.readings)}
	for _, at := range r.states {
		if at.temperature != nil {
			sum.Temperature = at.temperature // the last temperature is kept
		}
	}
	return sum
}

// reasons returns the reasons for a lower clock that were seen while the card worked.
func (r *run) reasons() (all power.Throttle) {
	for _, s := range r.states {
		if s.throttle != nil && s.at > 0 && s.at < r.timeline.length().Duration() {
			all |= *s.throttle
		}
	}
	return all
}

// heldDown are the reasons for a lower clock other than the workload's own power, the power cap and heat.
const heldDown = power.ApplicationClocks | power.HardwareSlowdown | power.SyncBoost | power.HardwarePowerBrake | power.DisplayClocks

// warnings adds the card's warnings to its result.
func (c *subject) warnings(self int) {
	r := c.result
	for _, name := range slices.Sorted(maps.Keys(c.sampler.failed)) {
		r.warn("%s: some queries failed: %v", name, c.sampler.failed[name])
	}
	for _, name := range []string{stitch.Counter, stitch.Instant, stitch.Buffer} {
		if reason := c.sampler.absent[name]; reason != "" {
			r.warn("%s: the trace is computed without this sensor, so its resolution is coarser", reason)
		}
	}
	for _, one := range r.Profiles {
		if 2*one.Golden < one.Taken {
			r.warn("only %d of %d runs are golden (in the main bin of execution times): execution times vary; check for other work on the card", one.Golden, one.Taken)
		}
		if one.throttle.Heat() {
			r.warn("the card reduced its clock because of its temperature: let the card cool, or check its airflow")
		}
		if held := one.throttle & heldDown; held != 0 {
			r.warn("the card's clock was limited (%s), so the measured power and times hold only for the lower clock: remove the limit and measure again", strings.Join(held.Names(), ", "))
		}
	}
	r.warnOfOthers(c.Card(), self)
}
