package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/component"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// ComponentOptions are options of [Components]. The zero value is ready to use.
type ComponentOptions struct {
	// Meter's Clock and Self are the machine's. Default window: 0.4 s.
	Meter power.Options
	// Activity predicts how much the operands' bits toggle. Default: the built-in calibration of the card, or the
	// nearest one.
	Activity *cost.Calibration
	// Anew measures all kernels again and replaces the file, even if it is damaged. Default: the run continues the
	// file.
	Anew bool
	// Progress is called after every reading. Default: it is not called.
	Progress func(done, total int, r component.Reading)
}

const (
	// firstSettle warms a cold card. Later kernels run for stressSettle before their window, because the memory's sensor is a
	// running mean over one second. A kernel at the power cap is read again, because the card's clock oscillates there.
	firstSettle  = 5 * time.Second
	stressSettle = 500 * time.Millisecond
	stressWindow = 400 * time.Millisecond
	everyStress  = 16 // the first kernel is read again after this many others
	// seedX and seedW draw the operands.
	seedX, seedW = 2, 3
)

// Components measures the kernels that the file does not contain yet, and rewrites the file after each kernel. It measures
// the first kernel again after every 16 other kernels. It returns the fitted model and writes it to the file. If a
// kernel cannot be measured, Components measures the other kernels and returns the model with an [ErrNotMeasured].
func Components(ctx context.Context, m measure.Machine, file string, list []Stress, o ComponentOptions) (*component.Model, error) {
	model, err := openComponents(m, file, o.Anew)
	if err != nil {
		return nil, err
	}
	r := componentRun{machine: m, file: file, model: model, opt: o}
	if r.opt.Activity == nil {
		if r.opt.Activity, err = cost.CalibrationFor(model.Card); err != nil {
			return nil, err
		}
	}
	if all, err := m.Card().Processes(); err == nil {
		if others := power.Others(all, os.Getpid()); len(others) > 0 {
			return nil, fmt.Errorf("another process (PID %d) uses %s, and the measured power would include that process: end the process, or choose another card", others[0].PID, model.Card)
		}
	}
	r.opt.Meter.Clock, r.opt.Meter.Self = m.Clock(), os.Getpid()
	if r.opt.Meter.Window == 0 {
		r.opt.Meter.Window = stressWindow
	}
	if r.meter, err = power.NewMeter(m.Card(), r.opt.Meter); err != nil {
		return nil, err
	}
	if err := r.all(ctx, list); err != nil {
		return nil, err
	}
	if err := model.Fit(); err != nil {
		return nil, errors.Join(append(r.failed, err)...)
	}
	if err := model.Write(file); err != nil {
		return nil, err
	}
	if len(r.failed) > 0 {
		return model, fmt.Errorf("%w: %w", ErrNotMeasured, errors.Join(r.failed...))
	}
	return model, nil
}

// openComponents reads the file of an earlier run, or begins a new model. It refuses another card's file.
func openComponents(m measure.Machine, file string, anew bool) (*component.Model, error) {
	info := m.Card().Info()
	model := &component.Model{Card: info.Name, CardID: info.ID(), Driver: info.Driver, Simulated: m.Platform() == nil}
	var err error
	if model.Facts, err = component.FactsFor(info.Name); err != nil {
		return nil, err
	}
	if info.PowerLimit != nil {
		model.PowerLimit = *info.PowerLimit
	}
	if info.MaxSMClock == nil {
		return nil, fmt.Errorf("%s does not report its highest clock, which the fit of components needs: choose another card", info.Name)
	}
	model.FullClock = *info.MaxSMClock
	if p := m.Platform(); p != nil {
		model.L2 = float64(p.L2)
	}
	if err := model.MayReplace(file); err != nil || anew {
		return model, err
	}
	old, err := component.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return model, nil
	}
	return old, err
}

// ErrNotMeasured is the error for kernels that could not be measured.
var ErrNotMeasured = errors.New("some kernels could not be measured; run the same command again to retry them")

// componentRun is the state of a measurement.
type componentRun struct {
	machine measure.Machine
	file    string
	model   *component.Model
	meter   *power.Meter
	opt     ComponentOptions
	warm    bool
	failed  []error // by kernel
}

// loaded holds a stress with its products in host memory. They are drawn while another stress runs.
type loaded struct {
	stress   Stress
	products []cuda.Product
	err      error
}

func (r *componentRun) all(ctx context.Context, list []Stress) error {
	todo := r.missing(list)
	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan loaded)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, s := range todo {
			l := loaded{stress: s}
			l.products, l.err = s.draw(ctx)
			select {
			case ready <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { cancel(); <-done }()
	for i := range todo {
		var l loaded
		select {
		case l = <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		if l.err != nil {
			return fmt.Errorf("%s: %w", l.stress.Name, l.err)
		}
		reading, err := r.one(ctx, l)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // continue with the other kernels
			r.failed = append(r.failed, fmt.Errorf("%s: %w", l.stress.Name, err))
			continue
		}
		r.model.Readings = append(r.model.Readings, reading)
		r.model.Coefficients, r.model.Quality = nil, nil // these were fitted to fewer readings
		if r.model.Command = r.opt.Meter.Command; !r.opt.Meter.Date.IsZero() {
			r.model.Date = r.opt.Meter.Date.Format(time.DateOnly)
		}
		if err := r.model.Write(r.file); err != nil {
			return err
		}
		if r.opt.Progress != nil {
			r.opt.Progress(i+1, len(todo), reading)
		}
	}
	return nil
}

// missing lists the kernels to measure. The first kernel is repeated after every 16 kernels. The other kernels are shuffled. So the card's
// temperature does not depend on the kind of kernel, and the kernels of an interrupted run are a sample of all kernels.
func (r *componentRun) missing(list []Stress) (todo []Stress) {
	have := map[string]bool{}
	for _, reading := range r.model.Readings {
		have[reading.Name] = true
	}
	shuffled := slices.Clone(list)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(list)-1, func(i, j int) {
		shuffled[i+1], shuffled[j+1] = shuffled[j+1], shuffled[i+1]
	})
	for i, s := range shuffled {
		if !have[s.Name] {
			todo = append(todo, s)
			if i > 0 && i%everyStress == 0 {
				todo = append(todo, list[0])
			}
		}
	}
	return todo
}

// draw draws the operands of a kernel's products, on all processors.
func (s Stress) draw(ctx context.Context) (list []cuda.Product, err error) {
	for _, p := range s.Products {
		drawn, d := cuda.Product{Name: s.Name, Problem: p.Problem}, p.Type.Operand()
		for _, o := range []struct {
			to      *gemm.Matrix
			pattern pattern.Pattern
			rows    int
			seed    uint64
		}{{&drawn.X, p.X, p.M, seedX}, {&drawn.W, p.W, p.N, seedW}} {
			data, err := o.pattern.Generate(ctx, pattern.Spec{DType: d, Rows: o.rows, Cols: p.K, Seed: o.seed}, runtime.GOMAXPROCS(0))
			if err != nil {
				return nil, err
			}
			*o.to = gemm.Matrix{DType: d, Rows: o.rows, Cols: p.K, Data: data}
		}
		list = append(list, drawn)
	}
	return list, nil
}

// load is a batch or a mix.
type load interface {
	power.Load
	Passes() int
	Close() error
}

// one measures one kernel.
func (r *componentRun) one(ctx context.Context, l loaded) (reading component.Reading, err error) {
	running, ran, err := r.put(ctx, l)
	if err != nil {
		return reading, err
	}
	defer func() {
		if ctx.Err() == nil { // after an interrupt, Close would wait for queued kernels; the machine's Close does so too
			err = errors.Join(err, running.Close())
		}
	}()
	settle := stressSettle
	if !r.warm {
		settle = firstSettle
	}
	w, err := r.meter.Reading(ctx, running, settle)
	if err == nil && w.CappedShare != nil && *w.CappedShare > 0 {
		w, err = r.meter.Reading(ctx, running, 0)
	}
	if err != nil {
		return reading, err
	}
	r.warm = true
	if w.SMClock == nil {
		return reading, fmt.Errorf("%s does not report its clock, which the fit of components needs: choose another card", r.model.Card)
	}
	w.Per(running.Passes())
	reading.HeldOut = l.stress.HeldOut
	if reading.Kernel, err = l.stress.kernel(r.toggling(ctx), ran, r.machine.Platform(), &r.model.Facts); err != nil {
		return reading, err
	}
	reading.Seconds, reading.Clock = digits(w.Seconds), digits(*w.SMClock)
	reading.Idle = min(reading.Idle, reading.Seconds)
	reading.Watts, reading.MemoryWatts = digits(w.Watts), w.MemoryWatts
	reading.Capped = w.CappedShare
	if w.Temperature != nil {
		reading.Temperature = *w.Temperature
	}
	if len(ran) == 1 {
		reading.Waves = digits(ran[0].Waves)
	}
	return reading, nil
}

// put loads a stress onto the card, and returns it with the GPU kernels of its products.
func (r *componentRun) put(ctx context.Context, l loaded) (load, []cuda.Kernel, error) {
	s, o := l.stress, cuda.Options{Cold: l.stress.Cold}
	if len(s.Traffic) == 0 {
		b, err := r.machine.NewBatch(ctx, s.Name, l.products, o)
		if err != nil {
			return nil, nil, err
		}
		return b, b.Kernels(), nil
	}
	m, err := r.machine.NewMix(ctx, s.Name, l.products, s.Traffic, o)
	if b, ok := m.(interface{ Kernels() []cuda.Kernel }); ok && err == nil {
		return m, b.Kernels(), nil
	}
	return m, nil, err
}

// toggling returns a function that predicts the toggling of a product's operands by the cost model.
func (r *componentRun) toggling(ctx context.Context) func(Stress, Operands) (bits, moved float64, err error) {
	return func(s Stress, p Operands) (bits, moved float64, err error) {
		d := p.Type.Operand()
		x, err := Operand(ctx, p.X, pattern.Spec{DType: d, Rows: p.M, Cols: p.K, Seed: seedX})
		if err != nil {
			return 0, 0, err
		}
		w, err := Operand(ctx, p.W, pattern.Spec{DType: d, Rows: p.N, Cols: p.K, Seed: seedW})
		if err != nil {
			return 0, 0, err
		}
		return r.opt.Activity.Toggling(ctx, s.costProduct(p), x, w)
	}
}
