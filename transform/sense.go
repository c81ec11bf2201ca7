package transform

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

// alone measures the sensitivity of each layer beside others that are as they were.
func (s *search) alone() error {
	o := offer{choice: make([]int, len(s.targets))}
	for i, c := range s.trade.curves {
		best := math.Inf(1)
		for k, p := range c {
			if d := math.Abs(math.Log(p.Error / probe)); p.Error > 0 && d < best {
				o.choice[i], best = k, d
			}
		}
	}
	list, err := s.sense(o)
	if err != nil {
		return err
	}
	sensitivity := make([]float64, len(s.targets))
	mean := 0.0
	for i, t := range s.targets {
		sensitivity[i] = max(0, list[t.tensor.Name])
		mean += sensitivity[i] / float64(len(s.targets))
	}
	if mean == 0 {
		return errors.New("no error of any layer changes the outputs: the tokens cannot judge this model")
	}
	for i := range sensitivity {
		sensitivity[i] = max(sensitivity[i], leastSensitivity*mean)
	}
	s.trade.sensitivity = sensitivity
	return nil
}

// sense has an offer's layers judged one by one, and records each, but for those that the record knows.
func (s *search) sense(o offer) (list map[string]float64, err error) {
	const name = "sensitivities"
	record := s.p.opt.Search.Record
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
	s.p.event("sense", len(list), len(s.targets))
	changed := leftOut{s.values(o), maps.Clone(list)}
	for i, t := range s.targets {
		if s.point(o, i).Error == 0 { // nothing to divide by: what it is given costs nothing
			changed.known[t.tensor.Name] = 0
		}
	}
	err = s.p.opt.Search.Judge.PerLayer(s.p.ctx, nil, changed, func(layer string, nats float64) error {
		i, ok := s.index[layer]
		if !ok {
			return nil
		}
		if !isNumber(nats) {
			return fmt.Errorf("%s: outputs diverge by %v nats where it alone is changed: the weights are too large for float32", layer, nats)
		}
		list[layer] = nats / s.point(o, i).Error
		s.p.event("sense", len(list), len(s.targets))
		if record != nil {
			if err := record.Save(name, list); err != nil {
				return err
			}
		}
		return s.p.ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("measuring what errors cost: %w", err)
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
