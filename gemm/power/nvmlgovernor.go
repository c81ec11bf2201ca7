//go:build cgo && linux && !nogpu

package power

import (
	"errors"
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func (c *nvmlCard) PowerLimit() (float64, error) {
	mw, ret := c.dev.GetPowerManagementLimit()
	return float64(mw) / 1000, queryError("power limit", ret)
}

func (c *nvmlCard) PowerLimits() (low, high, preset float64, err error) {
	least, most, ret := c.dev.GetPowerManagementLimitConstraints()
	if err := queryError("power limit range", ret); err != nil {
		return 0, 0, 0, err
	}
	usual, ret := c.dev.GetPowerManagementDefaultLimit()
	return float64(least) / 1000, float64(most) / 1000, float64(usual) / 1000, queryError("default power limit", ret)
}

func (c *nvmlCard) SetPowerLimit(watts float64) error {
	what := fmt.Sprintf("power limit of %v W", watts)
	mw, err := whole(watts * 1000)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return settingError(what, c.dev.SetPowerManagementLimit(mw))
}

func (c *nvmlCard) LockClock(mhz float64) error {
	what := fmt.Sprintf("clock locked at %v MHz", mhz)
	v, err := whole(mhz)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return settingError(what, c.dev.SetGpuLockedClocks(v, v))
}

func (c *nvmlCard) UnlockClock() error {
	return settingError("unlocking the clock", c.dev.ResetGpuLockedClocks())
}

// whole rounds a setting to an integer for NVML. It rejects numbers close to 2³², which have special meanings in NVML.
func whole(v float64) (uint32, error) {
	if v = math.Round(v); !(v >= 1 && v <= 1e9) {
		return 0, errors.New("invalid setting: give a positive number within the card's range")
	}
	return uint32(v), nil
}

// settingError returns the error of a rejected setting; nil for success.
func settingError(what string, ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("%s: %w", what, ErrNotPermitted)
	case nvml.ERROR_INVALID_ARGUMENT:
		return fmt.Errorf("%s: outside the card's range: run nvidia-smi -q -d POWER,SUPPORTED_CLOCKS to see the range", what)
	}
	return queryError(what, ret)
}
