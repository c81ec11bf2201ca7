package cuda

import "fmt"

// Info describes a GPU, its driver and its libraries.
type Info struct {
	Name       string   `json:"name"`
	Index      int      `json:"index"`      // CUDA's index, which depends on CUDA_VISIBLE_DEVICES
	PCIBusID   string   `json:"pci_bus_id"` // identifies the card in NVML
	Memory     int64    `json:"memory_bytes"`
	SMs        int      `json:"sms"` // streaming multiprocessors
	L2         int64    `json:"l2_bytes"`
	Capability string   `json:"compute_capability"`
	Driver     string   `json:"driver_cuda"` // newest CUDA version that the driver supports
	CublasLt   string   `json:"cublaslt"`
	Libraries  []string `json:"libraries"` // paths of the files in use, driver first

	capability int // 90 means 9.0
}

// info returns the driver's description of a GPU and its ordinal. It may be called on any thread after cuInit.
func (a *api) info(index int) (Info, int32, error) {
	var count, device, driver int32
	if err := a.check("cuDeviceGetCount", a.cuDeviceGetCount(&count)); err != nil {
		return Info{}, 0, noGPU("%w", err)
	}
	if index < 0 || index >= int(count) {
		return Info{}, 0, noGPU("there is no GPU %d: CUDA reports %d on this machine, counted from 0", index, count)
	}
	name, bus := make([]byte, 256), make([]byte, 32)
	var memory uint64
	err := first(
		func() error { return a.check("cuDeviceGet", a.cuDeviceGet(&device, int32(index))) },
		func() error { return a.check("cuDeviceGetName", a.cuDeviceGetName(&name[0], 256, device)) },
		func() error { return a.check("cuDeviceGetPCIBusId", a.cuDeviceGetPCIBusId(&bus[0], 32, device)) },
		func() error { return a.check("cuDeviceTotalMem", a.cuDeviceTotalMem(&memory, device)) },
		func() error { return a.check("cuDriverGetVersion", a.cuDriverGetVersion(&driver)) },
	)
	if err != nil {
		return Info{}, 0, err
	}
	var values [4]int32
	for i, attribute := range []int32{attrMultiprocessors, attrL2Bytes, attrCapabilityMajor, attrCapabilityMinor} {
		if err := a.check("cuDeviceGetAttribute", a.cuDeviceGetAttribute(&values[i], attribute, device)); err != nil {
			return Info{}, 0, err
		}
	}
	blas := a.cublasLtGetVersion()
	return Info{
		Name: text(name), Index: index, PCIBusID: text(bus), Memory: int64(memory),
		SMs: int(values[0]), L2: int64(values[1]),
		Capability: fmt.Sprintf("%d.%d", values[2], values[3]), capability: int(10*values[2] + values[3]),
		Driver:   cudaVersion(driver),
		CublasLt: fmt.Sprintf("%d.%d.%d", blas/10000, blas/100%100, blas%100), Libraries: a.libraries,
	}, device, nil
}

// first runs steps in order until one fails, and returns the error of that step.
func first(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
