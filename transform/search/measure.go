package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/transform/pass"
)

// ErrUnmeasured marks a search whose record lacks measurements; see [Options.Measured].
var ErrUnmeasured = errors.New("are not measured yet")

func unmeasured(missing, all int) error {
	return fmt.Errorf("%d of %d layers %w", missing, all, ErrUnmeasured)
}

// Measure measures the curves and the sensitivities of some of the layers and keeps them in o.Record, which is required. places are
// the layers' places in layers. A [Spend] of all layers with the same record, model, passes and tokens then finds them there. What
// the record has is not measured again. Several processes may measure different layers of a model at once, with one folder as their
// record.
func Measure(ctx context.Context, m *pass.Model, layers []*pass.Layer, lossy []pass.Choice, o Options, places []int) error {
	s, err := newSearch(m, layers, lossy, o)
	if err != nil {
		return err
	}
	if o.Record == nil {
		return errors.New("measurements of a part need a record that keeps them")
	}
	if err := s.findCurves(ctx, places); err != nil {
		return err
	}
	_, err = s.measureSensitivities(ctx, places)
	return err
}

// loadCurves reads curves from the record. Curves that the record lacks are an [ErrUnmeasured].
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
