package measure

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// simSequence adapts the simulated card's sequence to [Sequence].
type simSequence struct {
	*power.SimSequence
	name   string
	closed bool
}

func (s simulated) NewSequence(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic) (Sequence, error) {
	if len(products)+len(traffic) == 0 {
		return nil, fmt.Errorf("sequence %s: give at least one product or traffic pattern", name)
	}
	var kernels []power.SimKernel
	for _, p := range products {
		k, err := simProduct(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("sequence %s: %w", name, err)
		}
		k.Seconds = max(simKernel, k.Seconds)
		kernels = append(kernels, k)
	}
	for _, t := range traffic {
		k, err := simTraffic(t)
		if err != nil {
			return nil, fmt.Errorf("sequence %s: %w", name, err)
		}
		kernels = append(kernels, k)
	}
	return &simSequence{SimSequence: s.card.NewSequence(kernels), name: name}, nil
}

func (t *simSequence) Start(segments []cuda.Segment) error {
	if t.closed {
		return fmt.Errorf("sequence %s is closed", t.name)
	}
	var list []power.SimSegment
	for _, l := range segments {
		list = append(list, power.SimSegment{Kernel: l.Product, Executions: l.Executions})
	}
	if err := t.SimSequence.Start(list); err != nil {
		return fmt.Errorf("sequence %s: %w", t.name, err)
	}
	return nil
}

func (t *simSequence) Stamps() ([]cuda.Stamp, error) {
	found, err := t.SimSequence.Stamps()
	if err != nil {
		return nil, fmt.Errorf("sequence %s: %w", t.name, err)
	}
	stamps := make([]cuda.Stamp, len(found))
	for i, s := range found {
		stamps[i] = cuda.Stamp(s)
	}
	return stamps, nil
}

func (t *simSequence) Close() error {
	t.closed = true
	return nil
}

func (s simulated) ReadClock() (cuda.ClockReading, error) {
	r, err := s.card.ReadClock()
	return cuda.ClockReading(r), err
}
