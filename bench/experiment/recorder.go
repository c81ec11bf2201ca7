package experiment

import (
	"context"
	"fmt"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// measure measures points of a series and records every reading.
func (r *run) measure(ctx context.Context, b openJob, points []Point) error {
	if err := r.timeOver(); err != nil {
		return err
	}
	k := recorder{run: r, openJob: b, at: len(b.series.Sessions), maker: maker{setup: b.Setup, baseline: b.Baseline, workers: r.opt.Workers}, made: map[string]Measured{}}
	var list []measure.Point
	for _, p := range points {
		list = append(list, k.point(p))
	}
	s, err := measure.RunSeries(ctx, r.machine, b.Setup.Problem(), k.point(b.Baseline), list, measure.SeriesOptions{
		Cold: b.Setup.Cold, Every: r.opt.Every, Settle: r.opt.Settle, Meter: r.opt.Meter, Done: k.keep,
	})
	if s != nil {
		r.opt.Meter.SelfTest = s.SelfTest // of the same card, which needs one self-test
	}
	return err
}

// recorder makes the operands of a series and records its readings.
type recorder struct {
	*run
	openJob
	at    int // the session's place in the series
	maker maker
	mu    sync.Mutex          // operands are made in another goroutine
	made  map[string]Measured // by name
}

func (k *recorder) point(p Point) measure.Point {
	return measure.Point{Name: p.Name(), Operands: func(ctx context.Context) (gemm.Matrix, gemm.Matrix, error) {
		x, w, m, err := k.maker.make(ctx, p)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.made[p.Name()] = m
		return x, w, err
	}}
}

func (k *recorder) measured(name string) Measured {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.made[name]
}

// keep adds a reading to the series' file.
func (k *recorder) keep(s *measure.Session, r measure.Reading) error {
	if len(k.series.Sessions) == k.at { // the first reading is the baseline's
		k.series.Sessions = append(k.series.Sessions, Session{s, []Measured{k.measured(k.Baseline.Name())}})
	}
	if !r.Baseline {
		session := &k.series.Sessions[k.at]
		session.Points = append(session.Points, k.measured(r.Load))
	}
	if err := k.series.save(k.folder); err != nil {
		return fmt.Errorf("%w: %w", errSave, err)
	}
	if r.Baseline {
		return k.timeOver()
	}
	k.progress(k.Setup, r)
	return nil
}
