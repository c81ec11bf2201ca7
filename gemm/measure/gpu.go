package measure

import (
	"context"
	"errors"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// gpu is a real machine.
type gpu struct {
	device *cuda.Device
	card   power.Card
	clock  power.Clock
}

// Open opens the GPU with the given CUDA index, from 0, and its sensors. If this machine cannot measure energy, [NoGPU]
// is true for the error.
func Open(index int) (Machine, error) {
	return machineOf(cuda.Open(index))
}

// OpenShared is [Open] for cards that exchange data; see [cuda.OpenShared]. The machine owns the device and closes it.
func OpenShared(index int) (Machine, *cuda.Device, error) {
	device, err := cuda.OpenShared(index)
	m, err := machineOf(device, err)
	return m, device, err
}

func machineOf(device *cuda.Device, err error) (Machine, error) {
	if err != nil {
		return nil, err
	}
	card, err := power.Open(device.Info().PCIBusID)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return &gpu{device, card, power.HostClock()}, nil
}

// NoGPU reports whether an error means that the energy of a GPU cannot be measured on this machine: there is no GPU, no
// library or no sensor, or the GPU is a MIG slice.
func NoGPU(err error) bool {
	for _, reason := range []error{cuda.ErrNoGPU, power.ErrNoNVML, power.ErrNoCGO, power.ErrNoCard, power.ErrMIG} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

func (g *gpu) Card() power.Card { return g.card }

func (g *gpu) Clock() power.Clock { return g.clock }

func (g *gpu) Platform() *cuda.Info {
	info := g.device.Info()
	return &info
}

func (g *gpu) NewBatch(ctx context.Context, name string, products []cuda.Product, o cuda.Options) (Batch, error) {
	b, err := g.device.NewBatch(ctx, name, products, o)
	if err != nil {
		return nil, err
	}
	return gpuBatch{b}, nil
}

type gpuBatch struct{ *cuda.Batch }

func (b gpuBatch) Bursts() (power.Bursts, error) {
	found, err := b.Batch.Bursts()
	return power.Bursts(found), err
}

func (b gpuBatch) Copy(from Batch) error { return b.Batch.Copy(from.unwrapped().(gpuBatch).Batch) }
func (b gpuBatch) unwrapped() Batch      { return b }

func (g *gpu) NewMix(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic, o cuda.Options) (Mix, error) {
	b, err := g.device.NewMix(ctx, name, products, traffic, o)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (g *gpu) NewSequence(ctx context.Context, name string, products []cuda.Product, traffic []cuda.Traffic) (Sequence, error) {
	t, err := g.device.NewSequence(ctx, name, products, traffic)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (g *gpu) ReadClock() (cuda.ClockReading, error) { return g.device.ReadClock(g.clock.Now) }

func (g *gpu) Close() error {
	err := g.device.Close()
	if g.card != nil {
		err = errors.Join(err, g.card.Close())
		g.card = nil
	}
	return err
}
