package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Point is one pair of operands in a series.
type Point struct {
	Name string
	// Operands returns x[M,K] and w[N,K]. RunSeries calls it ahead of time in another goroutine, one point at a time.
	Operands func(ctx context.Context) (x, w gemm.Matrix, err error)
}

// SeriesOptions are the options of [RunSeries]. The zero value is ready to use.
type SeriesOptions struct {
	// Cold makes every product read its weights from memory, as in decode.
	Cold bool
	// Every is the number of points between two readings of the baseline. Default 8.
	Every int
	// Settle is how long a point runs before its window. If power differs by more than 4 % from the previous reading,
	// the window is repeated, because temperature and power control then take longer to settle. Default 600 ms.
	Settle time.Duration
	// Meter holds the meter's options. Window, WarmUp, SelfTest and Progress are used. The machine's values replace
	// Clock and Self.
	Meter power.Options
	// Done is called after every reading, including readings of the baseline. An error from Done ends the series.
	// Default: not called.
	Done func(*Session, Reading) error
}

// Reading is one window of a point. Joules and seconds are per product.
type Reading struct {
	power.Window
	// Baseline is true for a reading of the baseline.
	Baseline bool `json:"baseline,omitempty"`
}

// Session holds the readings of one run of a series on one card, in time order.
type Session struct {
	Platform  *cuda.Info      `json:"platform,omitempty"`
	Card      power.Info      `json:"card"`
	Simulated bool            `json:"simulated,omitempty"` // whether the card is simulated; simulated figures say nothing about a real card
	Kernel    *cuda.Kernel    `json:"kernel,omitempty"`
	SelfTest  *power.SelfTest `json:"self_test,omitempty"`
	Steady    bool            `json:"steady"` // whether the warm-up reached the steady state
	Settle    float64         `json:"settle_seconds"`
	Deviation *gemm.Deviation `json:"deviation,omitempty"` // deviation of the baseline's result from the reference
	Date      string          `json:"date,omitempty"`
	Command   string          `json:"command,omitempty"`
	Readings  []Reading       `json:"readings"`
}

// RunSeries measures many points of one problem, each for one window, without pauses: the next point's operands are
// uploaded while a point runs. All points and the baseline run in the same memory, so addresses do not affect their
// ratios. The baseline is measured first, last, after every o.Every points, and whenever the next point is not ready.
// This allows drifts to be removed ([Session.Relative]).
//
// Errors: [gemm.ErrNotFinite], with the point's name, if operands are not finite. The baseline's result is compared
// with the reference. The results of points are not checked, so the caller must ensure that they cannot overflow. Once
// the card runs, the session is never nil: after an error it holds the readings so far.
func RunSeries(ctx context.Context, m Machine, p gemm.Problem, baseline Point, points []Point, o SeriesOptions) (*Session, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if m == nil || baseline.Operands == nil {
		return nil, errors.New("a series needs a machine and a baseline with operands")
	}
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
	if k := v.memory.place.Kernels(); len(k) > 0 {
		s.Kernel = &k[0]
	}
	test, steady, err := v.meter.WarmUp(ctx, v.baseline)
	if s.SelfTest = test; err != nil {
		return s, err
	}
	s.Steady = steady.Reached
	return s, v.read(ctx, s)
}

// series is a series in progress.
type series struct {
	machine   Machine
	problem   gemm.Problem
	opt       SeriesOptions
	points    []Point
	meter     *power.Meter
	baseline  *guest
	point     *guest // latest point
	memory    common
	upload    Batch // memory into which the next point is uploaded
	batches   []Batch
	each      int // products per execution
	deviation *gemm.Deviation
	watts     float64 // power of the latest reading
}

// settled is the largest relative change of power from the previous reading that needs no repetition.
const settled = 0.04

// prepare uploads the baseline's operands three times: to the memory that keeps them, to the memory in which everything
// runs, and to the memory for uploads of points.
func (v *series) prepare(ctx context.Context, baseline Point) error {
	x, w, err := baseline.Operands(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", baseline.Name, err)
	}
	product := []cuda.Product{{Name: baseline.Name, Problem: v.problem, X: x, W: w}}
	on := cuda.Options{Cold: v.opt.Cold}
	for _, name := range []string{"baseline", "running", "upload"} {
		b, err := v.machine.NewBatch(ctx, name, product, on)
		if err != nil {
			return err
		}
		v.batches = append(v.batches, b)
		on.Repeat = repeats(v.batches[0])
	}
	v.memory.place, v.upload = v.batches[1], v.batches[2]
	v.baseline, v.point = &guest{&v.memory, v.batches[0], "baseline"}, &guest{&v.memory, v.upload, "point"}
	v.each = v.memory.place.Passes()
	found, err := v.baseline.check(ctx)
	if len(found) > 0 && found[0].Compared > 0 {
		v.deviation = &found[0]
	}
	return err
}

func (v *series) close(ctx context.Context) {
	if ctx.Err() != nil && v.meter != nil {
		return // closing would wait for the card's queue; the machine's Close frees the memory
	}
	for _, b := range v.batches {
		_ = b.Close() // the machine's Close frees the memory in any case
	}
}

// ready is an uploaded point.
type ready struct {
	name string
	err  error
}

// load uploads the points one at a time. A value from free means that the previous point has been copied to the memory
// in which it runs.
func (v *series) load(ctx context.Context, free <-chan struct{}, to chan<- ready) {
	defer close(to)
	for _, p := range v.points {
		x, w, err := p.Operands(ctx)
		if err == nil {
			select {
			case <-free:
				err = v.upload.Replace(ctx, 0, x, w)
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", p.Name, err)
		}
		select {
		case to <- ready{p.Name, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// read measures all points.
func (v *series) read(ctx context.Context, s *Session) error {
	ctx, cancel := context.WithCancel(ctx)
	free, points := make(chan struct{}, 1), make(chan ready, 1)
	free <- struct{}{}
	loaded := make(chan struct{})
	go func() { v.load(ctx, free, points); close(loaded) }()
	defer func() { cancel(); <-loaded }()
	for since := v.opt.Every; ; { // number of points since the last reading of the baseline
		var next ready
		more, uploaded := true, false
		if since < v.opt.Every {
			select {
			case next, more = <-points:
				uploaded = more
			default:
				if v.machine.Platform() == nil { // simulated time does not advance while waiting
					next, more = <-points
					uploaded = more
				}
			}
		}
		switch {
		case next.err != nil:
			return next.err
		case uploaded:
			v.memory.holds = nil // the memory holds an earlier point
			if err := v.point.settle(); err != nil {
				return fmt.Errorf("%s: %w", next.name, err)
			}
			free <- struct{}{}
			if err := v.one(ctx, s, v.point, next.name); err != nil {
				return err
			}
			since++
		case !more && s.Readings[len(s.Readings)-1].Baseline: // the last reading may already be a reading of the baseline
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

// one measures the baseline, which has no name, or a point.
func (v *series) one(ctx context.Context, s *Session, load power.Load, name string) error {
	w, err := v.meter.Reading(ctx, load, v.opt.Settle)
	if err == nil && math.Abs(w.Watts/v.watts-1) > settled { // true for the first reading as well
		w, err = v.meter.Reading(ctx, load, v.opt.Settle)
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
