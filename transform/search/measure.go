package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/transform/pass"
)

// ErrUnmeasured marks a search whose record lacks measurements; see [Options.Measured].
var ErrUnmeasured = errors.New("not measured yet")

func unmeasured(missing, all int) error {
	are := "are"
	if missing == 1 {
		are = "is"
	}
	return fmt.Errorf("%d of %d layers %s %w", missing, all, are, ErrUnmeasured)
}

// Measure measures the curves and the sensitivities of some layers, and stores them in o.Record, which is required.
// places are the layers' indices in layers. A later [Spend] of all layers with the same record, model, passes and
// tokens uses these measurements. Measurements that are in the record are not repeated. Several processes may measure
// different layers at the same time, with one folder as their record.
func Measure(ctx context.Context, m *pass.Model, layers []*pass.Layer, lossy []pass.Choice, o Options, places []int) error {
	s, err := newSearch(m, layers, lossy, o)
	if err != nil {
		return err
	}
	if o.Record == nil {
		return errors.New("a part of a search needs a record: set Options.Record")
	}
	if err := s.findCurves(ctx, places); err != nil {
		return err
	}
	_, err = s.measureSensitivities(ctx, places)
	return err
}

// loadCurves reads curves from the record. If the record lacks a curve, the error is an [ErrUnmeasured].
func (s *search) loadCurves(places []int) error {
	missing := 0
	for _, i := range places {
		found := false
		if s.opt.Record != nil {
			var err error
			if found, err = s.opt.Record.Load(curveName(s.layers[i]), &s.curves[i]); err != nil {
				return err
			}
		}
		if !found {
			missing++
		}
	}
	if missing > 0 {
		return unmeasured(missing, len(s.layers))
	}
	return nil
}
