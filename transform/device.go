package transform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Device runs models in place of the CPU. [evaluate.Device] is the device for a GPU.
type Device interface {
	// Name identifies everything that the last digits of the device's results depend on, such as the kind of card and
	// the version of a library.
	Name() string
	// Calibrate returns a model that computes calibration statistics, for sequences of at most longest tokens. The
	// scorer s must be for models of the same architecture.
	Calibrate(s *evaluate.Scorer, m *weights.Model, longest int) evaluate.Calibrated
	// Rounder returns the device that rounds layers; nil if the CPU rounds them.
	Rounder(ctx context.Context) (rounding.Device, error)
	// Release frees the memory of Rounder's device.
	Release() error
	// Compare is [evaluate.Scorer.Compare] without an observer.
	Compare(ctx context.Context, s *evaluate.Scorer, before, after *weights.Model) (*evaluate.Comparison, error)
}

// ErrOtherDevice marks a plan whose calibration statistics were computed on another device.
var ErrOtherDevice = errors.New("the result's bytes depend on the device, its driver and its compiler: apply the plan where it was made, or make a new plan")

// sampleFrom is the number of weights above which a search on a device compares a layer's candidates on a sample of
// its rows.
const sampleFrom = 1 << 22

// resultShare is the divisor of the host's available memory: one share keeps the layers that a device has rounded. The
// next trial of a search then computes only the changed layers.
const resultShare = 4

// resultRoom returns the memory for rounded layers in bytes; 0 if the available memory is unknown.
func resultRoom() int {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			return kib << 10 / resultShare
		}
	}
	return 0
}

// deviceKey combines the key of an input with the device that computes from it.
func deviceKey(key string, d Device) string {
	if d == nil {
		return key
	}
	h := sha256.Sum256([]byte(key + "\n" + d.Name()))
	return hex.EncodeToString(h[:])
}

// onCPU is the name for the CPU in messages.
const onCPU = "the CPU"

func deviceName(name string) string {
	if name == "" {
		return onCPU
	}
	return name
}

// device returns the device's name; empty for the CPU.
func (t *Tokens) device() string {
	if t.Device == nil {
		return ""
	}
	return t.Device.Name()
}

// checkDevice returns an error if another kind of device computed the plan's statistics.
func (t *Tokens) checkDevice(p *plan.Plan) error {
	if was, now := p.Request.Device, t.device(); was != now {
		return fmt.Errorf("the plan's calibration statistics were computed on %s, and this run would compute them on %s: %w", deviceName(was), deviceName(now), ErrOtherDevice)
	}
	return nil
}

// checkStatistics returns an error if the statistics h differ from a plan's statistics.
func (t *Tokens) checkStatistics(p *plan.Plan, h hessians) error {
	if was := p.Request.Statistics; was != "" && was != h.fit.Digest() {
		return fmt.Errorf("%s now computes other calibration statistics than when the plan was made (its driver or compiler may have changed): %w", deviceName(t.device()), ErrOtherDevice)
	}
	return nil
}

// calibrate returns the model on the device.
func (t *Tokens) calibrate() evaluate.Calibrated {
	switch {
	case t.calibrated != nil:
	case t.Device != nil:
		t.calibrated = t.Device.Calibrate(t.scorer, t.model, max(t.fit.T, t.held.T))
	default:
		t.calibrated = t.scorer.OnCPU(t.model)
	}
	return t.calibrated
}

// releaseRounder frees the memory of the rounding device.
func (t *Tokens) releaseRounder() error {
	if t == nil || t.Device == nil {
		return nil
	}
	return t.Device.Release()
}

// release frees the memory of a search.
func (t *Tokens) release() (err error) {
	if t.reference != nil {
		err = t.reference.Close()
	}
	if t.calibrated != nil {
		err = errors.Join(err, t.calibrated.Close())
	}
	t.reference, t.calibrated = nil, nil
	return err
}
