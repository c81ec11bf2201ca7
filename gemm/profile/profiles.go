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
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// profiles makes one of each order's runs.
func (t *taking) profiles(ctx context.Context) error {
	t.stage("stitch")
	t.place()
	var failed error
	for _, o := range t.orders {
		p, err := t.profile(ctx, o)
		t.result.Profiles = append(t.result.Profiles, p)
		failed = cmp.Or(failed, err)
	}
	t.result.after()
	t.warnings()
	return failed
}

// place moves all that was read to the time since the beginning of its run's work.
func (t *taking) place() {
	sync, err := synchronise(t.groups)
	if t.noClock != nil {
		err = t.noClock
	}
	if err != nil {
		t.result.warn("the card's clock does not answer (%v): readings are placed by when the host gave the work to the card, which is somewhat early", err)
	}
	t.result.Sync = sync
	var launch []float64
	for _, o := range t.orders {
		for _, r := range o.runs {
			begin := r.start
			if sync != nil {
				begin = sync.Host(r.first)
				for i, at := range r.progress.At {
					r.progress.At[i] = sync.Host(r.first+at) - begin
				}
				launch = append(launch, (begin - r.start).Seconds())
			}
			for i := range r.readings {
				r.readings[i].At -= begin
				if r.readings[i].Sensor == Counter {
					r.readings[i].Since -= begin
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
	sync.Launch = seconds(stats.Median(launch))
	if slack := 2*sync.Residual + time.Millisecond; sync.Launch < -slack {
		t.result.warn("work seems to begin %v before it was given to the card: the clocks do not fit, and early times are as wrong", -sync.Launch)
	}
}

// profile of an order's golden runs.
func (t *taking) profile(ctx context.Context, o *order) (Profile, error) {
	p := Profile{Taken: len(o.runs), Advised: t.result.Products[o.legs[0].Product].Advised.Runs, Runs: []Run{}}
	golden := t.golden(o)
	for _, r := range o.runs {
		p.Runs = append(p.Runs, r.summary(o))
		p.Late += r.late
	}
	if p.Golden = len(golden); len(golden) == 0 {
		return p, fmt.Errorf("no runs, no curve: %w", ErrTooFew)
	}
	paces := map[int]Progress{}
	for _, r := range golden {
		paces[r.run] = r.progress
	}
	p.progressed(paces)
	p.legs(o, t.result.Products)
	p.usual = evenly(p.progress, p.Legs)
	for _, r := range golden {
		r.align(p.progress)
		p.readings = append(p.readings, r.readings...)
		p.throttle |= r.reasons()
	}
	p.Throttle = p.throttle.Names()
	p.States = meanStates(golden, p.End()+lead)
	if t.opt.Readings {
		p.Readings, p.Paces = p.readings, p.paces
	}
	err := t.stitch(ctx, &p)
	if errors.Is(err, ErrTooFew) {
		err = fmt.Errorf("%s, %w: take more, or longer ones", plural(len(golden), "golden run"), err)
	}
	if p.Curve == nil {
		return p, err
	}
	p.conclude(t.result.Products, t.opt)
	return p, err
}

// progressed keeps the golden runs' progress, and their mean.
func (p *Profile) progressed(paces map[int]Progress) {
	var all []Progress
	for _, run := range slices.Sorted(maps.Keys(paces)) {
		all = append(all, paces[run])
	}
	p.progress, p.paces = meanProgress(all), paces
}

// conclude from the curve.
func (p *Profile) conclude(products []Product, o Options) {
	first := p.Legs[0]
	about := products[first.Product]
	p.Steady = FindSteady(p.Curve, part(p.progress, 0, first.Executions), about.Advised.Margin, o.Tolerance)
	p.Milestones = nil
	p.milestones()
	p.Inside = inside(p)
}

// stitch a profile's readings. Where the context ends, or has ended, a coarser curve comes with its error, as far
// as there is time for one.
func (t *taking) stitch(ctx context.Context, p *Profile) (err error) {
	o := p.stitchOptions(t.opt, t.result.SelfTest)
	if !t.broken {
		p.Curve, p.Sensors, err = Stitch(ctx, p.readings, o)
		if err == nil || ctx.Err() == nil {
			return err
		}
		t.breakOff(err)
	}
	if t.until.IsZero() {
		t.until = time.Now().Add(mercy)
	}
	grace, end := context.WithDeadline(context.WithoutCancel(ctx), t.until)
	defer end()
	o.Step, o.Resamples, o.Resolution, o.Pace = t.opt.Step, t.opt.Resamples, time.Hour, nil // whatever is quick
	p.Curve, p.Sensors, err = Stitch(grace, ofLatest(p.readings, fewRuns), o)
	return cmp.Or(ctx.Err(), err)
}

func (p *Profile) stitchOptions(o Options, test *power.SelfTest) StitchOptions {
	breaks := []time.Duration{0}
	for _, l := range p.Legs {
		breaks = append(breaks, l.End)
	}
	return StitchOptions{
		From: -lead, To: p.End() + lead, Step: o.Step, Breaks: breaks, Sensors: priors(test), Resolution: o.Resolution,
		Seed: o.Seed, Resamples: o.Resamples, Pace: p.pace,
	}
}

// pace of a run between two moments of the mean run, over what is usual for the leg.
func (p *Profile) pace(run int, from, to time.Duration) float64 {
	own := p.paces[run]
	if len(own.At) == 0 {
		return 1
	}
	return float64(aligned(p.progress, p.usual, to)-aligned(p.progress, p.usual, from)) /
		float64(aligned(p.progress, own, to)-aligned(p.progress, own, from))
}

// ofLatest are the readings of the latest runs, of those that follow each other.
func ofLatest(readings []Reading, runs int) []Reading {
	for i, r := range readings {
		if r.Run > readings[len(readings)-1].Run-runs {
			return readings[i:]
		}
	}
	return nil
}

// golden are the runs whose legs all take as long as the fullest bin's do.
func (t *taking) golden(o *order) (golden []*run) {
	var like []*run // those that were stamped as the first was
	for _, r := range o.runs {
		if slices.Equal(r.progress.Done, o.runs[0].progress.Done) {
			r.golden = true
			like = append(like, r)
		}
	}
	from := 0
	for _, l := range o.legs {
		var legs []Progress
		for _, r := range like {
			legs = append(legs, part(r.progress, from, from+l.Executions))
		}
		for i, is := range Golden(legs) {
			like[i].golden = like[i].golden && is
		}
		from += l.Executions
	}
	for _, r := range like {
		if r.golden {
			golden = append(golden, r)
		}
	}
	return golden
}

// priors are what the self-test found of the sensors' windows. It counts the time for which a reading
// stands, too, and saw a single step, at some phase of the sensor: of one whose window is no longer than
// that time it says nothing.
func priors(test *power.SelfTest) (known []Sensor) {
	if test == nil {
		return nil
	}
	for _, s := range []struct {
		name     string
		response *power.Response
	}{{Instant, test.Instant}, {Average, test.Average}} {
		if r := s.response; r != nil && r.Window > 4*r.Update {
			known = append(known, Sensor{Name: s.name, Window: seconds(r.Window - r.Update)})
		}
	}
	return known
}

// align moves a run's readings to where the mean run was as far.
func (r *run) align(mean Progress) {
	for i := range r.readings {
		a := &r.readings[i]
		a.At = aligned(r.progress, mean, a.At)
		if a.Sensor == Counter {
			a.Since = aligned(r.progress, mean, a.Since)
		}
	}
}

// summary of a run.
func (r *run) summary(o *order) Run {
	n := o.legs[0].Executions
	s := Run{Begin: r.start.Seconds(), Seconds: momentOf(r.progress, n).Seconds() / float64(n), Golden: r.golden, Readings: len(r.readings)}
	for _, at := range r.states {
		if at.temperature != nil {
			s.Temperature = at.temperature // the last one counts
		}
	}
	return s
}

// reasons for a lower clock that were seen while it worked.
func (r *run) reasons() (all power.Throttle) {
	for _, s := range r.states {
		if s.throttle != nil && s.at > 0 && s.at < r.length() {
			all |= *s.throttle
		}
	}
	return all
}

// legs of the mean run.
func (p *Profile) legs(o *order, products []Product) {
	done, begin := 0, time.Duration(0)
	for _, l := range o.legs {
		done += l.Executions
		end := momentOf(p.progress, done)
		p.Legs = append(p.Legs, Leg{Product: l.Product, Name: products[l.Product].Name, Executions: l.Executions, Begin: begin, End: end})
		begin = end
	}
}

// warnings says what speaks against the figures.
func (t *taking) warnings() {
	r := t.result
	for _, name := range slices.Sorted(maps.Keys(t.watcher.failed)) {
		r.warn("%s: some questions failed: %v", name, t.watcher.failed[name])
	}
	for _, name := range []string{Counter, Instant, Buffer} {
		if t.watcher.absent[name] {
			r.warn("this card has no %s: the curve is the coarser for it", name)
		}
	}
	for _, p := range r.Profiles {
		if 2*p.Golden < p.Taken {
			r.warn("only %d of %d runs are golden: execution times vary; see what else the card does", p.Golden, p.Taken)
		}
		if p.throttle.Heat() {
			r.warn("the card slowed down for heat: let it cool, or see to its airflow")
		}
		if held := p.throttle & heldDown; held != 0 {
			r.warn("the card's clock was held down (%s): the figures are those of a slower card", strings.Join(held.Names(), ", "))
		}
	}
	r.inspect(t.machine.Card(), t.opt.Self)
}

// heldDown are the reasons for a lower clock that are neither the load's own doing nor heat.
const heldDown = power.ApplicationClocks | power.HardwareSlowdown | power.SyncBoost | power.HardwarePowerBrake | power.DisplayClocks
