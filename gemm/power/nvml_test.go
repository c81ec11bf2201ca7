//go:build cgo && linux && !nogpu

package power

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// mockCard answers as an H200 was seen to.
func mockCard() *mock.Device {
	return &mock.Device{
		IsMigDeviceHandleFunc:       func() (bool, nvml.Return) { return false, nvml.SUCCESS },
		GetMigModeFunc:              func() (int, int, nvml.Return) { return 0, 0, nvml.SUCCESS },
		GetNameFunc:                 func() (string, nvml.Return) { return "NVIDIA H200", nvml.SUCCESS },
		GetUUIDFunc:                 func() (string, nvml.Return) { return "GPU-1", nvml.SUCCESS },
		GetEnforcedPowerLimitFunc:   func() (uint32, nvml.Return) { return 700000, nvml.SUCCESS },
		GetPowerManagementLimitFunc: func() (uint32, nvml.Return) { return 700000, nvml.SUCCESS },
		GetMaxClockInfoFunc:         func(nvml.ClockType) (uint32, nvml.Return) { return 1980, nvml.SUCCESS },
		GetMinMaxClockOfPStateFunc: func(nvml.ClockType, nvml.Pstates) (uint32, uint32, nvml.Return) {
			return 345, 1980, nvml.SUCCESS
		},
		GetMemoryInfoFunc:               func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 150e9, Used: 1e9}, nvml.SUCCESS },
		GetComputeModeFunc:              func() (nvml.ComputeMode, nvml.Return) { return nvml.COMPUTEMODE_DEFAULT, nvml.SUCCESS },
		GetTotalEnergyConsumptionFunc:   func() (uint64, nvml.Return) { return 42, nvml.SUCCESS },
		GetTemperatureFunc:              func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 61, nvml.SUCCESS },
		GetClockInfoFunc:                func(c nvml.ClockType) (uint32, nvml.Return) { return 1000 + uint32(c), nvml.SUCCESS },
		GetGraphicsRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED },
		GetPowerManagementDefaultLimitFunc: func() (uint32, nvml.Return) {
			return 0, nvml.ERROR_NOT_SUPPORTED
		},
		GetPowerManagementLimitConstraintsFunc: func() (uint32, uint32, nvml.Return) {
			return 200000, 700000, nvml.SUCCESS
		},
		GetPersistenceModeFunc: func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS },
		GetEccModeFunc: func() (nvml.EnableState, nvml.EnableState, nvml.Return) {
			return nvml.FEATURE_ENABLED, nvml.FEATURE_ENABLED, nvml.SUCCESS
		},
		GetCurrentClocksThrottleReasonsFunc: func() (uint64, nvml.Return) { return 4, nvml.SUCCESS },
		GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 1 << 20}, {Pid: 7}, {Pid: 8, UsedGpuMemory: 1<<64 - 1}}, nvml.SUCCESS
		},
		GetFieldValuesFunc: func(values []nvml.FieldValue) nvml.Return {
			for i := range values {
				fill186(&values[i])
			}
			return nvml.SUCCESS
		},
	}
}

// fill186 knows both sensors of the card and the average of the memory.
func fill186(v *nvml.FieldValue) {
	answers := map[[2]uint32]uint32{{186, 0}: 512345, {185, 0}: 500000, {185, 2}: 38000}
	mw, ok := answers[[2]uint32{v.FieldId, v.ScopeId}]
	if !ok {
		v.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
		return
	}
	v.ValueType = uint32(nvml.VALUE_TYPE_UNSIGNED_INT)
	binary.NativeEndian.PutUint32(v.Value[:], mw)
}

func mockLibrary(dev nvml.Device) *mock.Interface {
	return &mock.Interface{
		InitFunc:                       func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:                   func() nvml.Return { return nvml.SUCCESS },
		DeviceGetCountFunc:             func() (int, nvml.Return) { return 1, nvml.SUCCESS },
		DeviceGetHandleByIndexFunc:     func(int) (nvml.Device, nvml.Return) { return dev, nvml.SUCCESS },
		SystemGetDriverVersionFunc:     func() (string, nvml.Return) { return "580.1", nvml.SUCCESS },
		SystemGetCudaDriverVersionFunc: func() (int, nvml.Return) { return 13010, nvml.SUCCESS },
		DeviceGetHandleByPciBusIdFunc: func(bus string) (nvml.Device, nvml.Return) {
			if bus == "0000:1B:00.0" {
				return dev, nvml.SUCCESS
			}
			return nil, nvml.ERROR_NOT_FOUND
		},
		DeviceGetHandleByUUIDFunc: func(uuid string) (nvml.Device, nvml.Return) {
			if uuid == "GPU-1" {
				return dev, nvml.SUCCESS
			}
			return nil, nvml.ERROR_NOT_FOUND
		},
	}
}

func TestNVMLReadings(t *testing.T) {
	lib := mockLibrary(mockCard())
	card, err := openNVML(lib, "GPU-1")
	if err != nil {
		t.Fatal(err)
	}
	is := func(what string, want float64) func(float64, error) {
		return func(got float64, err error) {
			t.Helper()
			if err != nil || got != want {
				t.Errorf("%s: %v, %v, want %v", what, got, err, want)
			}
		}
	}
	is("instant", 512.345)(card.Power(Instant, GPU))
	is("average", 500)(card.Power(Average, GPU))
	is("memory", 38)(card.Power(Average, Memory))
	is("temperature", 61)(card.Temperature())
	is("SM clock", 1001)(card.SMClock())
	is("memory clock", 1002)(card.MemClock())
	for _, scope := range []Scope{Module, Memory} {
		if v, err := card.Power(Instant, scope); !errors.Is(err, ErrAbsent) {
			t.Errorf("scope %d: %v, %v, want ErrAbsent", scope, v, err)
		}
	}
	if e, err := card.Energy(); e != 42 || err != nil {
		t.Errorf("energy %v, %v", e, err)
	}
	if r, err := card.Throttle(); r != SoftwarePowerCap || err != nil {
		t.Errorf("throttle %v, %v", r, err)
	}
	all, err := card.Processes()
	if err != nil || len(all) != 2 || all[0] != (Process{7, 1 << 20}) || all[1] != (Process{PID: 8}) {
		t.Errorf("processes %v, %v", all, err)
	}
	if err := card.Close(); err != nil || len(lib.ShutdownCalls()) != 1 {
		t.Errorf("close: %v", err)
	}
}

func TestNVMLInfo(t *testing.T) {
	card, err := openNVML(mockLibrary(mockCard()), "0000:1B:00.0")
	if err != nil {
		t.Fatal(err)
	}
	info := card.Info()
	if info.Name != "NVIDIA H200" || info.CUDA != "13.1" || info.Driver != "580.1" || info.ComputeMode != "default" {
		t.Errorf("%+v", info)
	}
	if *info.PowerLimit != 700 || *info.PowerLimitMin != 200 || *info.MemoryBytes != 150e9 || *info.MemoryUsed != 1e9 || !*info.ECC || *info.MIG {
		t.Errorf("%+v", info)
	}
	if info.PowerLimitPreset != nil {
		t.Errorf("a limit that is not answered is %v", *info.PowerLimitPreset)
	}
}

func TestNVMLAbsentAndBroken(t *testing.T) {
	dev := mockCard()
	card, err := openNVML(mockLibrary(dev), "0")
	if err != nil {
		t.Fatal(err)
	}
	for ret, want := range map[nvml.Return]string{
		nvml.ERROR_NOT_SUPPORTED: ErrAbsent.Error(), nvml.ERROR_NO_PERMISSION: "no permission",
		nvml.ERROR_GPU_IS_LOST: "lost", nvml.ERROR_UNKNOWN: "unknown error", 77: "code 77",
	} {
		dev.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 0, ret }
		_, err := card.Energy()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", ret, err)
		}
		if errors.Is(err, ErrAbsent) != (ret == nvml.ERROR_NOT_SUPPORTED) {
			t.Errorf("%v counts as absent: %v", ret, err)
		}
	}
	dev.GetFieldValuesFunc = func([]nvml.FieldValue) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
	if _, err := card.Power(Instant, GPU); !errors.Is(err, ErrAbsent) {
		t.Errorf("power: %v", err)
	}
}

func TestNVMLOpenErrors(t *testing.T) {
	sliced := mockCard()
	sliced.GetMigModeFunc = func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_ENABLE, 1, nvml.SUCCESS }
	for _, c := range []struct {
		name, id string
		lib      *mock.Interface
		want     error
		text     string
	}{
		{"index", "3", mockLibrary(mockCard()), ErrNoCard, "the number of cards is 1"},
		{"negative", "-1", mockLibrary(mockCard()), ErrNoCard, "no card -1"},
		{"uuid", "GPU-2", mockLibrary(mockCard()), ErrNoCard, "nvidia-smi -q"},
		{"bus", "0000:1C:00.0", mockLibrary(mockCard()), ErrNoCard, "nvidia-smi -q"},
		{"nonsense", "first", mockLibrary(mockCard()), ErrNoCard, "index such as 0"},
		{"slice", "MIG-1", mockLibrary(mockCard()), ErrMIG, "whole card"},
		{"sliced card", "0", mockLibrary(sliced), ErrMIG, "divided into"},
	} {
		_, err := openNVML(c.lib, c.id)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(c.lib.ShutdownCalls()) != 1 {
			t.Errorf("%s: the library stays open", c.name)
		}
	}
	for ret, text := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND: "install NVIDIA's driver", nvml.ERROR_DRIVER_NOT_LOADED: "not loaded",
		nvml.ERROR_NO_PERMISSION: "/dev/nvidia", nvml.ERROR_LIB_RM_VERSION_MISMATCH: "reboot",
	} {
		lib := mockLibrary(nil)
		lib.InitFunc = func() nvml.Return { return ret }
		if _, err := openNVML(lib, "0"); !errors.Is(err, ErrNoNVML) || !strings.HasPrefix(err.Error(), "NVML cannot be used: ") || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v", ret, err)
		}
	}
}
