package power

import (
	"context"
	"math"
	"time"
)

// simBurst is the duration of a burst in seconds.
const simBurst = 1e-3

// Pace makes every later execution last at least the time every, with gaps after bursts of about a millisecond. 0: back
// to back.
func (l *SimLoad) Pace(_ context.Context, every time.Duration) error {
	l.every = every
	return nil
}

// Rest queues the gaps of n executions.
func (l *SimLoad) Rest(n int) error { return l.startPaced(n, false) }

func (l *SimLoad) startPaced(n int, work bool) error {
	l.runs = nil
	bursts := l.kernel.bursts()
	slot := l.every / time.Duration(bursts)
	for range n * bursts {
		burst := &simWork{SimKernel: l.kernel, left: 1 / float64(bursts), slot: slot}
		if !work {
			burst.left = 0
		}
		l.runs = append(l.runs, l.sim.queueWork(burst), l.sim.queueWork(&simWork{left: 1, slot: slot, gap: true}))
	}
	return nil
}

// Bursts returns the bursts of the last Start. It fails with [ErrAbsent] before they have ended, and if the load has no
// pace.
func (l *SimLoad) Bursts() (b Bursts, err error) {
	if _, err := l.Elapsed(); err != nil || l.every == 0 {
		return b, ErrAbsent
	}
	for _, w := range l.runs {
		if !w.gap {
			b.Count++
			b.Busy += w.end - w.begin
			b.Clock += w.cycles
		}
	}
	if b.Busy > 0 {
		b.Clock /= b.Busy.Seconds()
	}
	return b, nil
}

// openGap sets the duration of a gap to the rest of its burst's slot.
func (s *Sim) openGap(burst *simWork) {
	if gap := s.queue[0]; gap.gap {
		gap.Seconds = max(time.Nanosecond, gap.slot-(s.now-burst.begin)).Seconds()
	}
}

// pacedShare returns the share of the maximum clock at which the mean power of the slots is at the limit. still is the
// power in a gap, and demand the power that the work adds at full clock. If a burst fills its slot, the limit is that
// of continuous work.
func (s *Sim) pacedShare(w *simWork, still, demand float64) float64 {
	duty := w.Seconds / float64(w.bursts()) / w.slot.Seconds() // duty at full clock
	e := s.opt.ClockExponent
	room := max(0, s.settings.Limit-still) / demand
	return max(math.Pow(room, 1/e), math.Pow(room/duty, 1/(e-1)))
}

// bursts returns the number of bursts of an execution.
func (k SimKernel) bursts() int { return max(1, int(k.Seconds/simBurst)) }
