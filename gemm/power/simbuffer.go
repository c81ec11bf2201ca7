package power

import (
	"math"
	"time"
)

// simBuffer holds the power readings that the simulated driver stores.
type simBuffer struct {
	size          int
	every, window time.Duration
	opens, closes time.Duration // start and end times of the next windows
	open          []float64     // energy in joules at the start of each unfinished window
	kept          []Sample      // stored readings, newest last
}

// begin opens the windows that started before time 0, at idle power.
func (b *simBuffer) begin(o SimOptions, idle float64) {
	b.size, b.every, b.window = o.BufferSize, o.BufferEvery, o.BufferWindow
	for b.opens, b.closes = b.every-b.window, b.every; b.size > 0 && b.opens < 0; b.opens += b.every {
		b.open = append(b.open, idle*b.opens.Seconds())
	}
}

// next returns the time at which take must be called next.
func (b *simBuffer) next() time.Duration {
	if b.size == 0 {
		return math.MaxInt64
	}
	return min(b.opens, b.closes)
}

// take opens and closes windows, given the energy drawn so far.
func (b *simBuffer) take(now time.Duration, joule float64) {
	if b.size == 0 {
		return
	}
	if now >= b.closes {
		watts := (joule - b.open[0]) / b.window.Seconds()
		b.open = b.open[1:]
		b.kept = append(b.kept[max(0, len(b.kept)+1-b.size):], Sample{simEpoch.Add(b.closes), milliwatts(watts)})
		b.closes += b.every
	}
	if now >= b.opens {
		b.open = append(b.open, joule)
		b.opens += b.every
	}
}

// Samples returns stored readings, one every BufferEvery.
func (s *Sim) Samples(after time.Time) ([]Sample, error) {
	s.query()
	if s.buffer.size == 0 {
		return nil, ErrAbsent
	}
	if err := s.lost(); err != nil {
		return nil, err
	}
	var kept []Sample
	for _, k := range s.buffer.kept {
		if k.At.After(after) {
			kept = append(kept, k)
		}
	}
	return kept, nil
}
