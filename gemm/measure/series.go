package measure

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Point is operands of a series's product.
type Point struct {
	Name string
	// Operands makes them, x[M,K] and w[N,K]: ahead of time, in another goroutine, one point after
	// the other.
	Operands func(ctx context.Context) (x, w gemm.Matrix, err error)
}

// SeriesOptions of a series. The zero value is ready to use.
type SeriesOptions struct {
	// Cold makes every product read its weights from memory, as decoding does.
	Cold bool
	// Every so many points the baseline is read again. Default 8.
	Every int
	// Settle is how long a point runs before its window. Default 600 ms. Where the power then differs
	// by more than 4 % from the reading before, that window was part of settling, and another is read:
	// the die's temperature follows within seconds, and a card that comes to its cap swings.
	Settle time.Duration
	// Meter's Clock and Self are the machine's; of the rest Window, WarmUp, SelfTest and Progress
	// count.
	Meter power.Options
	// Done is told of every reading, the baseline's too, as soon as it is there. An error ends the
	// series. Default: no one is told.
	Done func(*Session, Reading) error
}

// Reading is one window of a point; joules and seconds are those of one product.
type Reading struct {
	power.Window
	// Baseline is whether the baseline was read.
	Baseline bool `json:"baseline,omitempty"`
}

// Session is what one series read on one card, in the order of time.
type Session struct {
	Platform  *cuda.Info      `json:"platform,omitempty"`
	Card      power.Info      `json:"card"`
	Simulated bool            `json:"simulated,omitempty"` // figures mean nothing
	Kernel    *cuda.Kernel    `json:"kernel,omitempty"`
	SelfTest  *power.SelfTest `json:"self_test,omitempty"`
	Steady    bool            `json:"steady"` // the warm-up came to an end by itself
	Settle    float64         `json:"settle_seconds"`
	Deviation *gemm.Deviation `json:"deviation,omitempty"` // of the baseline's product, from the reference
	Date      string          `json:"date,omitempty"`
	Command   string          `json:"command,omitempty"`
	Readings  []Reading       `json:"readings"`
}

// RunSeries reads many points of one problem, each for a window, one straight after the other: the
// next one's operands go to the card while the one before runs. The baseline is read first, last,
// after Every points, and whenever the next point is not ready, so that what drifts can be taken
// out ([Session.Relative]).
//
// Operands that are not finite are a [gemm.ErrNotFinite] that names the point; the baseline's
// result is held against the reference. Results of points are not looked at: see to it that they
// cannot overflow. Once the card runs the session is never nil: with an error it holds what was
// read until then.
func RunSeries(ctx context.Context, m Machine, p gemm.Problem, baseline Point, points []Point, o SeriesOptions) (*Session, error) {
	if o.Every < 1 {
		o.Every = 8
	}
	if o.Settle <= 0 {
		o.Settle = 600 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := series{machine: m, problem: p, opt: o, points: points, each: 1}
	defer v.close(ctx)
	if err := v.prepare(ctx, baseline); err != nil {
		return nil, err
	}
	o.Meter.Clock, o.Meter.Self = m.Clock(), os.Getpid()
	var err error
	if v.meter, err = power.NewMeter(m.Card(), o.Meter); err != nil {
		return nil, err
	}
	s := &Session{Platform: m.Platform(), Simulated: m.Platform() == nil, Card: m.Card().Info(),
		Settle: o.Settle.Seconds(), Command: o.Meter.Command, Deviation: v.deviation, Readings: []Reading{}}
	if !o.Meter.Date.IsZero() {
		s.Date = o.Meter.Date.Format(time.RFC3339)
	}
	if k := v.baseline.Kernels(); len(k) > 0 {
		s.Kernel = &k[0]
	}
	test, steady, err := v.meter.WarmUp(ctx, v.baseline)
	if s.SelfTest = test; err != nil {
		return s, err
	}
	s.Steady = steady.Reached
	return s, v.read(ctx, s)
}

// series is one under way.
type series struct {
	machine   Machine
	problem   gemm.Problem
	opt       SeriesOptions
	points    []Point
	meter     *power.Meter
	baseline  Batch
	slots     [2]Batch // points take turns
	each      int      // products of an execution
	deviation *gemm.Deviation
	watts     float64 // of the latest reading
}

// settled power is that of the reading before, within so much of it.
const settled = 0.04

// prepare puts the baseline's operands on the card, three times over.
func (v *series) prepare(ctx context.Context, baseline Point) error {
	x, w, err := baseline.Operands(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", baseline.Name, err)
	}
	product := []cuda.Product{{Name: baseline.Name, Problem: v.problem, X: x, W: w}}
	for i, to := range []*Batch{&v.baseline, &v.slots[0], &v.slots[1]} {
		b, err := v.machine.NewBatch(ctx, fmt.Sprint([]string{"baseline", "one", "other"}[i]), product, cuda.Options{Cold: v.opt.Cold})
		if err != nil {
			return err
		}
		*to = b
	}
	v.each = v.baseline.Passes()
	found, err := v.baseline.Check(ctx)
	if len(found) > 0 && found[0].Compared > 0 {
		v.deviation = &found[0]
	}
	return err
}

func (v *series) close(ctx context.Context) {
	if ctx.Err() != nil && v.meter != nil {
		return // closing waits for what the card has still queued; the machine's Close does too
	}
	for _, b := range []Batch{v.baseline, v.slots[0], v.slots[1]} {
		if b != nil {
			_ = b.Close() // memory on a card that goes back in any case; the readings stand
		}
	}
}

// ready is a point whose operands are on the card.
type ready struct {
	name string
	in   Batch
	err  error
}

// load brings the points to the card, each into the slot that is free.
func (v *series) load(ctx context.Context, free <-chan Batch, to chan<- ready) {
	defer close(to)
	for _, p := range v.points {
		x, w, err := p.Operands(ctx)
		var in Batch
		if err == nil {
			select {
			case in = <-free:
				err = in.Replace(ctx, 0, x, w)
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", p.Name, err)
		}
		select {
		case to <- ready{p.Name, in, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// read goes through all points.
func (v *series) read(ctx context.Context, s *Session) error {
	ctx, cancel := context.WithCancel(ctx)
	free, points := make(chan Batch, len(v.slots)), make(chan ready, 1)
	for _, b := range v.slots {
		free <- b
	}
	loaded := make(chan struct{})
	go func() { v.load(ctx, free, points); close(loaded) }()
	defer func() { cancel(); <-loaded }()
	for since := v.opt.Every; ; { // points since the baseline was read
		var next ready
		more := true
		if since < v.opt.Every {
			select {
			case next, more = <-points:
			default:
				if v.machine.Platform() == nil { // simulated time waits
					next, more = <-points
				}
			}
		}
		switch {
		case next.err != nil:
			return next.err
		case next.in != nil:
			if err := v.one(ctx, s, next.in, next.name); err != nil {
				return err
			}
			free <- next.in
			since++
		case !more && s.Readings[len(s.Readings)-1].Baseline: // its reading may have been due just now
			return nil
		default:
			if err := v.one(ctx, s, v.baseline, ""); err != nil {
				return err
			}
			if since = 0; !more {
				return nil
			}
		}
	}
}

// one reads a batch; the baseline has no name.
func (v *series) one(ctx context.Context, s *Session, b Batch, name string) error {
	w, err := v.meter.Reading(ctx, b, v.opt.Settle)
	if err == nil && math.Abs(w.Watts/v.watts-1) > settled { // also where there was none before
		w, err = v.meter.Reading(ctx, b, v.opt.Settle)
	}
	if err != nil {
		return err
	}
	v.watts = w.Watts
	w.Per(v.each)
	w.Load = name
	s.Readings = append(s.Readings, Reading{w, name == ""})
	if v.opt.Done != nil {
		return v.opt.Done(s, s.Readings[len(s.Readings)-1])
	}
	return nil
}
