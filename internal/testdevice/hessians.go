package testdevice

import (
	"context"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Hessians are Hessians with a device, as [program.DeviceHessians].
type Hessians struct {
	*testmodel.Hessians
	Rounder *Rounder
}

// Device implements [program.DeviceHessians].
func (h Hessians) Device() rounding.Device { return h.Rounder }

// Input returns the tensor's name: no layers share an input.
func (h Hessians) Input(tensor string) string { return tensor }

// Triangle implements [program.DeviceHessians].
func (h Hessians) Triangle(ctx context.Context, tensor string, held bool) (*rounding.Triangle, error) {
	of := h.Fit
	if held {
		of = h.Held
	}
	m, err := of(ctx, tensor)
	if err != nil {
		return nil, err
	}
	return rounding.NewTriangle(m), nil
}
