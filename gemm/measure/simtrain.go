package measure

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// simTrain is the simulated card's train, in the terms of a GPU.
type simTrain struct {
	*power.SimTrain
	name   string
	closed bool
}

func (s simulated) NewTrain(ctx context.Context, name string, products []cuda.Product) (Train, error) {
	if len(products) == 0 {
		return nil, fmt.Errorf("train %s: no products", name)
	}
	var kernels []power.SimKernel
	for _, p := range products {
		k, err := simProduct(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("train %s: %w", name, err)
		}
		k.Seconds = max(simKernel, k.Seconds)
		kernels = append(kernels, k)
	}
	return &simTrain{SimTrain: s.card.NewTrain(kernels), name: name}, nil
}

func (t *simTrain) Start(legs []cuda.Leg) error {
	if t.closed {
		return fmt.Errorf("train %s is closed", t.name)
	}
	var list []power.SimLeg
	for _, l := range legs {
		list = append(list, power.SimLeg{Kernel: l.Product, Executions: l.Executions})
	}
	if err := t.SimTrain.Start(list); err != nil {
		return fmt.Errorf("train %s: %w", t.name, err)
	}
	return nil
}

func (t *simTrain) Stamps() ([]cuda.Stamp, error) {
	found, err := t.SimTrain.Stamps()
	if err != nil {
		return nil, fmt.Errorf("train %s: %w", t.name, err)
	}
	stamps := make([]cuda.Stamp, len(found))
	for i, s := range found {
		stamps[i] = cuda.Stamp(s)
	}
	return stamps, nil
}

func (t *simTrain) Close() error {
	t.closed = true
	return nil
}

func (s simulated) ReadClock() (cuda.ClockReading, error) {
	r, err := s.card.ReadClock()
	return cuda.ClockReading(r), err
}
