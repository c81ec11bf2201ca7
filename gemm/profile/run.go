package profile

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// run is one, from an idle card to an idle card.
type run struct {
	*recording
	start    time.Duration // when the work was given to the card, by the host's clock
	first    time.Duration // when it began, by the card's
	progress Progress      // by the card's clock
	golden   bool
}

// run rests, works and watches. It ends within a moment of the context's end.
func (t *taking) run(ctx context.Context, o *order, number int) (*run, error) {
	if err := t.clock.Sleep(ctx, t.rest(number)-lead); err != nil {
		return nil, err
	}
	r := &run{recording: t.watcher.record(number)}
	if err := r.watch(ctx, t.clock.Now()+lead); err != nil {
		return nil, err
	}
	r.start = t.clock.Now()
	if err := t.train.Start(o.legs); err != nil {
		return nil, err
	}
	err := r.watch(ctx, r.start+o.lasts+lead)
	if failed := t.train.Wait(ctx); err == nil { // it must be waited for in any case
		err = failed
	}
	if err != nil {
		return nil, err
	}
	stamps, err := t.train.Stamps()
	if err != nil {
		return nil, err
	}
	if r.progress, err = progressOf(stamps, o.legs); err != nil {
		return nil, err
	}
	r.first = stamps[0].At
	o.lasts = r.length()
	if err := r.watch(ctx, r.start+o.lasts+lead); err != nil { // it may have lasted longer than expected
		return nil, err
	}
	r.answer(Buffer, r.fetch)
	t.readClock(laterReadings)
	return r, nil
}

// rest until the work begins: at a phase of the sensors that is as far from those of the other runs as
// can be. Multiples of the golden ratio see to that, however many runs there will be, and for every period
// that divides this one; where chance chose, some phases would be missed.
func (t *taking) rest(number int) time.Duration {
	_, part := math.Modf(t.phase + float64(number)*math.Phi)
	earliest := t.clock.Now() + t.opt.Idle
	wait := (time.Duration(part*float64(phase)) - earliest) % phase
	if wait < 0 {
		wait += phase
	}
	return t.opt.Idle + wait
}

// length of the run's work.
func (r *run) length() time.Duration { return r.progress.At[len(r.progress.At)-1] }

// progressOf counts the executions of all legs on, from the first stamp.
func progressOf(stamps []cuda.Stamp, legs []cuda.Leg) (Progress, error) {
	before := make([]int, len(legs)+1) // executions before each leg
	for i, l := range legs {
		before[i+1] = before[i] + l.Executions
	}
	var p Progress
	for _, s := range stamps {
		if s.Leg < 0 || s.Leg >= len(legs) {
			return p, fmt.Errorf("a stamp of leg %d of %d", s.Leg, len(legs))
		}
		done, at := before[s.Leg]+s.Done, s.At-stamps[0].At
		n := len(p.Done)
		if n > 0 && done == p.Done[n-1] {
			continue // the end of a leg is the beginning of the next
		}
		if n > 0 && (done < p.Done[n-1] || at < p.At[n-1]) {
			return p, fmt.Errorf("the card's stamps run backwards: %d executions after %v follow %d after %v", done, at, p.Done[n-1], p.At[n-1])
		}
		p.Done, p.At = append(p.Done, done), append(p.At, at)
	}
	if n := len(p.Done); n < 2 || p.Done[0] != 0 || p.Done[n-1] != before[len(legs)] || p.At[n-1] == 0 {
		return p, fmt.Errorf("%d stamps do not cover %d executions", len(stamps), before[len(legs)])
	}
	return p, nil
}
