package search

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
)

// probe is the approximate relative error at which sensitivities are measured. It is large enough to measure. It is
// also small enough for a divergence proportional to the error.
const probe = 3e-3

// leastSensitivity is the lower bound of a layer's sensitivity, as a share of the mean, so that every error has a
// cost.
const leastSensitivity = 1e-4

// sensitivities measures the divergence of the model's outputs for an error of each layer alone. all are the places
// of all layers.
func (s *search) sensitivities(ctx context.Context, all []int) error {
	list, err := s.measureSensitivities(ctx, all)
	if err != nil {
		return err
	}
	sensitivity := make([]float64, len(s.layers))
	mean := 0.0
	for i, t := range s.layers {
		sensitivity[i] = max(0, list[t.Weight.Name])
		mean += sensitivity[i] / float64(len(s.layers))
	}
	if mean == 0 {
		return errors.New("errors of the layers do not change the model's outputs on these tokens, so the loss cannot be predicted: give other tokens")
	}
	for i := range sensitivity {
		sensitivity[i] = max(sensitivity[i], leastSensitivity*mean)
	}
	s.sensitivity = sensitivity
	return nil
}

// probes chooses the point of each curve at which sensitivities are measured. The choice depends on the layer's curve
// alone.
func (s *search) probes() allocation {
	o := allocation{choice: make([]int, len(s.layers))}
	for i, c := range s.curves {
		best := math.Inf(1)
		for k, p := range c {
			if d := math.Abs(elementary.Log(p.Error / probe)); p.Error > 0 && d < best {
				o.choice[i], best = k, d
			}
		}
	}
	return o
}

// sensitivityName returns the name of a layer's sensitivity in the record.
func sensitivityName(layer string) string { return "sensitivities/" + layer }

// measureSensitivities measures the divergence that each layer at the given places causes alone, divided by the
// layer's relative error. It records the results. Layers that are in the record are skipped, and so are layers whose
// step causes no error.
func (s *search) measureSensitivities(ctx context.Context, places []int) (list map[string]float64, err error) {
	o := s.probes()
	list = map[string]float64{}
	changed := only{values{s, o}, map[string]bool{}}
	for _, i := range places {
		name := s.layers[i].Weight.Name
		if s.point(o, i).Error == 0 {
			continue
		}
		v, found, err := s.loadSensitivity(name)
		switch {
		case err != nil:
			return nil, err
		case found:
			list[name] = v
		default:
			changed.wanted[name] = true
		}
	}
	total := len(list) + len(changed.wanted)
	if s.opt.Measured && len(changed.wanted) > 0 {
		return nil, unmeasured(len(changed.wanted), len(s.layers))
	}
	report := func() {
		s.report(progress.Event{Stage: "sensitivities", Done: int64(len(list)), Total: int64(total)})
	}
	report()
	if len(changed.wanted) == 0 {
		return list, nil
	}
	err = s.opt.Evaluator.PerLayer(ctx, nil, changed, func(layer string, nats float64) error {
		i, ok := s.index[layer]
		if !ok {
			return nil
		}
		if !isNumber(nats) {
			return fmt.Errorf("%s: the model's outputs diverge by %v nats if this layer alone is changed: its weights are too large for float32: exclude this layer with ignore", layer, nats)
		}
		list[layer] = nats / s.point(o, i).Error
		report()
		if s.opt.Record != nil {
			if err := s.opt.Record.Save(sensitivityName(layer), list[layer]); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("measuring sensitivities: %w", err)
	}
	return list, nil
}

func (s *search) loadSensitivity(layer string) (v float64, found bool, err error) {
	if s.opt.Record != nil {
		found, err = s.opt.Record.Load(sensitivityName(layer), &v)
	}
	return v, found, err
}

// only restricts values to the layers whose sensitivity is measured.
type only struct {
	values
	wanted map[string]bool
}

func (o only) Tensor(ctx context.Context, name string) ([]float32, error) {
	if !o.wanted[name] {
		return nil, nil
	}
	return o.values.Tensor(ctx, name)
}

func (o only) Stored(ctx context.Context, name string) (d weights.DType, data []byte, ok bool, err error) {
	if !o.wanted[name] {
		return d, nil, true, nil
	}
	return o.values.Stored(ctx, name)
}
