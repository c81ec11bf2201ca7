//go:build cgo && linux && !nogpu

package power

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// settable makes a mock's limit and clock settable and returns their values. refuse is the result of settings.
func settable(dev *mock.Device, refuse *nvml.Return) (limit, clock *uint32) {
	limit, clock = new(uint32), new(uint32)
	*limit = 600000
	answer := func(to *uint32, v uint32) nvml.Return {
		if *refuse == nvml.SUCCESS {
			*to = v
		}
		return *refuse
	}
	dev.GetPowerManagementLimitFunc = func() (uint32, nvml.Return) { return *limit, nvml.SUCCESS }
	dev.GetPowerManagementDefaultLimitFunc = func() (uint32, nvml.Return) { return 700000, nvml.SUCCESS }
	dev.SetPowerManagementLimitFunc = func(mw uint32) nvml.Return { return answer(limit, mw) }
	dev.SetGpuLockedClocksFunc = func(low, high uint32) nvml.Return {
		if low != high {
			return nvml.ERROR_INVALID_ARGUMENT
		}
		return answer(clock, low)
	}
	dev.ResetGpuLockedClocksFunc = func() nvml.Return { return answer(clock, 0) }
	return limit, clock
}

func TestNVMLGovernor(t *testing.T) {
	dev, refuse := mockCard(), nvml.SUCCESS
	limit, clock := settable(dev, &refuse)
	card, err := openNVML(mockLibrary(dev), "0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := Govern(card)
	if err != nil || *limit != 600000 {
		t.Fatalf("govern: %v, limit %d mW", err, *limit)
	}
	if low, high, preset, err := g.PowerLimits(); low != 200 || high != 700 || preset != 700 || err != nil {
		t.Errorf("limits %v to %v, default %v, %v", low, high, preset, err)
	}
	if err := g.SetPowerLimit(412.5); err != nil || *limit != 412500 {
		t.Errorf("limit %d mW, %v", *limit, err)
	}
	if w, err := g.PowerLimit(); w != 412.5 || err != nil {
		t.Errorf("limit %v W, %v", w, err)
	}
	if err := g.LockClock(1200); err != nil || *clock != 1200 {
		t.Errorf("clock %d, %v", *clock, err)
	}
	if err := g.UnlockClock(); err != nil || *clock != 0 {
		t.Errorf("clock %d, %v", *clock, err)
	}
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1), 0xffffff00} { // the last is "the TDP" to NVML
		if g.SetPowerLimit(v) == nil || g.LockClock(v) == nil {
			t.Errorf("%v is taken", v)
		}
	}
	if *limit != 412500 || *clock != 0 {
		t.Errorf("limit %d, clock %d after settings that were refused", *limit, *clock)
	}
	for ret, c := range map[nvml.Return]struct {
		is   error
		text string
	}{
		nvml.ERROR_NO_PERMISSION:    {ErrNotPermitted, "root"},
		nvml.ERROR_NOT_SUPPORTED:    {ErrAbsent, "not supported"},
		nvml.ERROR_INVALID_ARGUMENT: {nil, "nvidia-smi -q"},
		nvml.ERROR_GPU_IS_LOST:      {nil, "lost"},
	} {
		refuse = ret
		for _, err := range []error{g.SetPowerLimit(500), g.LockClock(1000), g.UnlockClock()} {
			if err == nil || !strings.Contains(err.Error(), c.text) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v: %v", ret, err)
			}
		}
		_, err := Govern(card)
		if absent := ret == nvml.ERROR_NOT_SUPPORTED; (err == nil) != absent || c.is == ErrNotPermitted && !errors.Is(err, ErrNotPermitted) {
			t.Errorf("govern, %v: %v", ret, err)
		}
	}
}

// TestNVMLReadingChangesNothing: a mock panics at an unset function, so no query may change a setting.
func TestNVMLReadingChangesNothing(t *testing.T) {
	card, err := openNVML(mockLibrary(mockCard()), "0")
	if err != nil {
		t.Fatal(err)
	}
	g := card.(Governor)
	if w, err := g.PowerLimit(); w != 700 || err != nil {
		t.Errorf("limit %v, %v", w, err)
	}
	if _, _, _, err := g.PowerLimits(); !errors.Is(err, ErrAbsent) { // this card has no default
		t.Errorf("limits: %v", err)
	}
}

// TestNVMLFailures: whichever query of the limits fails, its error is told, and no number beside it.
func TestNVMLFailures(t *testing.T) {
	dev, refuse := mockCard(), nvml.SUCCESS
	settable(dev, &refuse)
	card, err := openNVML(mockLibrary(dev), "0")
	if err != nil {
		t.Fatal(err)
	}
	g := card.(Governor)
	dev.GetPowerManagementLimitConstraintsFunc = func() (uint32, uint32, nvml.Return) { return 1, 2, nvml.ERROR_GPU_IS_LOST }
	if low, high, preset, err := g.PowerLimits(); !errors.Is(err, ErrLost) || low != 0 || high != 0 || preset != 0 {
		t.Errorf("%v to %v, default %v: %v", low, high, preset, err)
	}
	dev.GetPowerManagementLimitFunc = func() (uint32, nvml.Return) { return 1, nvml.ERROR_GPU_IS_LOST }
	if _, err := g.PowerLimit(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

// TestNVMLEdges: settings at the ends of what is possible, samples between readings, and everything in Info, whose queries fail one by one.
func TestNVMLEdges(t *testing.T) {
	for v, want := range map[float64]uint32{1: 1, 0.6: 1, 1e9: 1e9, 1410.4: 1410} {
		if got, err := whole(v); got != want || err != nil {
			t.Errorf("%v becomes %d, %v", v, got, err)
		}
	}
	for _, v := range []float64{0.4, 1e9 + 1} {
		if _, err := whole(v); err == nil {
			t.Errorf("%v is taken", v)
		}
	}
	dev, refuse := mockCard(), nvml.SUCCESS
	settable(dev, &refuse)
	info := nvmlInfo(mockLibrary(dev), dev)
	js, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"H200-9207","name":"NVIDIA H200","uuid":"GPU-1","driver":"580.1","cuda":"13.1","compute_mode":"default","memory_bytes":150000000000,` +
		`"memory_used_bytes":1000000000,"power_limit_watts":700,"power_limit_min_watts":200,"power_limit_max_watts":700,"power_limit_default_watts":700,"min_sm_clock_mhz":345,` +
		`"max_sm_clock_mhz":1980,"max_mem_clock_mhz":1980,"ecc":true,"mig":false,"persistence":true}`
	if string(js) != want {
		t.Errorf("%s\nwant %s", js, want)
	}
	lost := nvml.ERROR_GPU_IS_LOST
	dev.GetMinMaxClockOfPStateFunc = func(nvml.ClockType, nvml.Pstates) (uint32, uint32, nvml.Return) { return 1, 2, lost }
	dev.GetPowerManagementLimitConstraintsFunc = func() (uint32, uint32, nvml.Return) { return 1, 2, lost }
	dev.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 1}, lost }
	dev.GetEccModeFunc = func() (nvml.EnableState, nvml.EnableState, nvml.Return) { return 1, 1, lost }
	dev.GetMigModeFunc = func() (int, int, nvml.Return) { return 1, 1, lost }
	dev.GetComputeModeFunc = func() (nvml.ComputeMode, nvml.Return) { return nvml.COMPUTEMODE_PROHIBITED, lost }
	info = nvmlInfo(mockLibrary(dev), dev)
	if info.MinSMClock != nil || info.PowerLimitMin != nil || info.PowerLimitMax != nil || info.MemoryBytes != nil || info.ECC != nil || info.MIG != nil || info.ComputeMode != "" {
		t.Errorf("%+v", info)
	}
	now := time.UnixMicro(1e15)
	for micro, want := range map[int64]int64{1e15: 1e15, 1e15 - 9999999: 1e15 - 9999999, 1e15 - 10000000: 1e15, 1e15 + 999999: 1e15 + 999999, 1e15 + 1000000: 1e15, 0: 1e15} {
		if got := stamped(micro, now); got != time.UnixMicro(want) {
			t.Errorf("a stamp of %d becomes %d", micro, got.UnixMicro())
		}
	}
}
