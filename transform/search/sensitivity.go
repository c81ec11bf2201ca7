package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
)

// probe is about the error at which sensitivities are measured: enough to be told from none, and
// little enough that twice the error is twice the loss.
const probe = 3e-3

// least sensitivity, in shares of the mean: no error is free.
const leastSensitivity = 1e-4

// sensitivities measures how far the outputs diverge by an error of each layer alone.
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
		return errors.New("no error of any layer changes the outputs: the tokens cannot tell what this model loses")
	}
	for i := range sensitivity {
		sensitivity[i] = max(sensitivity[i], leastSensitivity*mean)
	}
	s.sensitivity = sensitivity
	return nil
}

// measureSensitivities asks for the divergence of an allocation's layers one by one, and records each, but for those
// that the record knows.
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
		if s.point(o, i).Error == 0 { // nothing to divide by: what it is given costs nothing
			changed.known[t.Weight.Name] = 0
		}
	}
	err = s.opt.Evaluator.PerLayer(ctx, nil, changed, func(layer string, nats float64) error {
		i, ok := s.index[layer]
		if !ok {
			return nil
		}
		if !isNumber(nats) {
			return fmt.Errorf("%s: outputs diverge by %v nats where it alone is changed: the weights are too large for float32", layer, nats)
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

// leftOut are values without those of layers that are known.
type leftOut struct {
	Values
	known map[string]float64
}

func (l leftOut) Tensor(ctx context.Context, name string) ([]float32, error) {
	if _, known := l.known[name]; known {
		return nil, nil
	}
	return l.Values.Tensor(ctx, name)
}
