package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// probe is about the relative error at which sensitivities are measured. It is large enough to measure, and small enough
// that the divergence is proportional to the error.
const probe = 3e-3

// leastSensitivity bounds a layer's sensitivity from below, as a share of the mean, so that no error is free.
const leastSensitivity = 1e-4

// sensitivities measures the divergence of the model's outputs that an error of each layer alone causes.
func (s *search) sensitivities(ctx context.Context) error {
	o := allocation{choice: make([]int, len(s.layers))}
	for i, c := range s.curves {
		best := math.Inf(1)
		for k, p := range c {
			if d := math.Abs(math.Log(p.Error / probe)); p.Error > 0 && d < best {
				o.choice[i], best = k, d
			}
		}
	}
	list, err := s.measureSensitivities(ctx, o)
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
		return errors.New("errors of the layers do not change the model's outputs on these tokens, so its loss cannot be predicted: give other tokens")
	}
	for i := range sensitivity {
		sensitivity[i] = max(sensitivity[i], leastSensitivity*mean)
	}
	s.sensitivity = sensitivity
	return nil
}

// measureSensitivities measures the divergence of an allocation's layers one by one, divided by their relative error, and
// records each. It skips layers that the record has.
func (s *search) measureSensitivities(ctx context.Context, o allocation) (list map[string]float64, err error) {
	const name = "sensitivities"
	record := s.opt.Record
	if record != nil {
		if found, err := record.Load(name, &list); err != nil {
			return nil, err
		} else if !found {
			list = nil
		}
	}
	if list == nil {
		list = map[string]float64{}
	}
	s.progress("sensitivities", len(list))
	changed := leftOut{values{s, o}, maps.Clone(list)}
	for i, t := range s.layers {
		if s.point(o, i).Error == 0 { // its step causes no error
			changed.known[t.Weight.Name] = 0
		}
	}
	err = s.opt.Evaluator.PerLayer(ctx, nil, changed, func(layer string, nats float64) error {
		i, ok := s.index[layer]
		if !ok {
			return nil
		}
		if !isNumber(nats) {
			return fmt.Errorf("%s: the model's outputs diverge by %v nats if this layer alone is changed: its weights are too large for float32", layer, nats)
		}
		list[layer] = nats / s.point(o, i).Error
		s.progress("sensitivities", len(list))
		if record != nil {
			if err := record.Save(name, list); err != nil {
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

// leftOut are values without those of layers whose sensitivity is known.
type leftOut struct {
	values
	known map[string]float64
}

func (l leftOut) Tensor(ctx context.Context, name string) ([]float32, error) {
	if _, known := l.known[name]; known {
		return nil, nil
	}
	return l.values.Tensor(ctx, name)
}

func (l leftOut) Stored(ctx context.Context, name string) (d weights.DType, data []byte, ok bool, err error) {
	if _, known := l.known[name]; known {
		return d, nil, true, nil
	}
	return l.values.Stored(ctx, name)
}
