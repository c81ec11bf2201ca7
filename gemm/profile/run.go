package profile

import (
	"context"
	"math"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// undisturbed executes a run. If the run was disturbed, undisturbed discards it and repeats it after the card has
// rested.
func (p *profiler) undisturbed(ctx context.Context, s *sequence, number int) (all []*run, err error) {
	disturbed := p.subject
	err = power.Undisturbed(ctx, p.clock, func(bool) error {
		if all, err = p.run(ctx, s, number); err != nil {
			return err
		}
		for i, c := range p.cards {
			disturbed = c
			if err := all[i].wrong; err != nil {
				return err
			}
			if err := c.monitor.Check(); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) {
		disturbed.result.warn("a run was disturbed (%v), and was repeated after a wait", err)
	})
	return all, err
}

// run is one execution of a launch sequence that starts and ends with an idle card.
type run struct {
	*recording
	launched time.Duration // time of the launch, by the host's clock
	first    time.Duration // start of the work, by the card's clock
	timeline Timeline      // by the card's clock
	golden   bool
}

// run waits, executes the sequence and records every card's sensors. It returns shortly after the context ends.
func (p *profiler) run(ctx context.Context, s *sequence, number int) ([]*run, error) {
	if err := p.clock.Sleep(ctx, p.rest(number)-margin); err != nil {
		return nil, err
	}
	var all []*run
	var recordings []*recording
	for _, c := range p.cards {
		r := &run{recording: c.sampler.record(number)}
		all, recordings = append(all, r), append(recordings, r.recording)
	}
	if err := sample(ctx, p.clock, p.clock.Now()+margin, recordings...); err != nil {
		return nil, err
	}
	launched := p.clock.Now()
	if err := p.launcher.Start(s.segments); err != nil {
		return nil, err
	}
	err := sample(ctx, p.clock, launched+s.lasts+s.after, recordings...)
	if failed := p.launcher.Wait(ctx); err == nil { // wait for the card also after an error
		err = failed
	}
	if err != nil {
		return nil, err
	}
	for i, r := range all {
		stamps, err := p.launcher.Stamps(i)
		if err != nil {
			return nil, err
		}
		if r.timeline, err = timelineOf(stamps, s.segments); err != nil {
			return nil, err
		}
		r.launched, r.first = launched, stamps[0].At
	}
	s.lasts = all[0].timeline.length().Duration()
	p.ended = launched + s.lasts
	if err := sample(ctx, p.clock, p.ended+s.after, recordings...); err != nil { // the work may last longer than expected
		return nil, err
	}
	for _, r := range all {
		r.ask(stitch.Buffer, r.fetch)
	}
	p.readClock(laterReadings)
	return all, nil
}

// rest returns the time until the work begins. The sensors' phases at the start of the work are spread over all runs by
// multiples of the golden ratio. This covers the phases evenly for any number of runs and every sensor period that
// divides sensorPeriod. Random phases would leave gaps.
func (p *profiler) rest(number int) time.Duration {
	_, part := math.Modf(p.phase + float64(number)*math.Phi)
	now := p.clock.Now()
	earliest := max(now+margin, p.ended+p.opt.Idle)
	wait := (time.Duration(part*float64(sensorPeriod)) - earliest) % sensorPeriod
	if wait < 0 {
		wait += sensorPeriod
	}
	return earliest - now + wait
}
