package power

import (
	"errors"
	"slices"
	"time"
)

// ErrAbsent is what a query returns that this card, driver or build does not answer. Absent is
// never reported as 0.
var ErrAbsent = errors.New("the card does not answer")

// Card is one GPU as its sensors show it. It is read only: a [Governor] alone can change a setting.
// Queries fail with ErrAbsent where the card has no such sensor.
type Card interface {
	// Info describes the card; it is read once, on opening.
	Info() Info
	// Energy is the energy counter: millijoules since the driver was loaded.
	Energy() (uint64, error)
	// Power reads a power sensor in watts.
	Power(Sensor, Scope) (float64, error)
	// Sample reads a power sensor together with the moment that the driver gives for it.
	Sample(Sensor, Scope) (Sample, error)
	// Samples are the readings that the driver kept of the whole card's power, after the moment given,
	// oldest first.
	Samples(after time.Time) ([]Sample, error)
	// Temperature of the GPU's die in °C.
	Temperature() (float64, error)
	// SMClock of the multiprocessors in MHz.
	SMClock() (float64, error)
	// MemClock of the memory in MHz.
	MemClock() (float64, error)
	// Throttle says what holds the clock down at this moment.
	Throttle() (Throttle, error)
	// Processes that hold the card, this one among them.
	Processes() ([]Process, error)
	// Close lets the card go. No query may follow.
	Close() error
}

// Sensor is a way of reading power.
type Sensor uint8

const (
	// Instant is a short sample: about 25 ms of every 100 ms on A100 and H100.
	Instant Sensor = iota
	// Average is a running average: about 1 s on recent cards, so wrong for the first 1.5 s of
	// anything.
	Average
)

// Scope is the part of the board whose power is read.
type Scope uint8

const (
	GPU Scope = iota // the whole card
	Module
	Memory
)

// Sample is a power reading and its moment, by the host's wall clock; [Clock.Of] makes it one of a
// measurement's.
type Sample struct {
	At    time.Time
	Watts float64
}

// Process holds memory on the card.
type Process struct {
	PID   int    `json:"pid"`
	Bytes uint64 `json:"bytes,omitempty"` // of device memory; absent where not known
}

// Info describes a card. A nil pointer or an empty string is something that it does not answer.
type Info struct {
	Name             string   `json:"name,omitempty"`
	UUID             string   `json:"uuid,omitempty"`
	Driver           string   `json:"driver,omitempty"`
	CUDA             string   `json:"cuda,omitempty"` // newest CUDA version that the driver runs, "13.0"
	ComputeMode      string   `json:"compute_mode,omitempty"`
	MemoryBytes      *uint64  `json:"memory_bytes,omitempty"`
	MemoryUsed       *uint64  `json:"memory_used_bytes,omitempty"` // when it was opened, by all processes and the driver
	PowerLimit       *float64 `json:"power_limit_watts,omitempty"` // the limit that is enforced
	PowerLimitMin    *float64 `json:"power_limit_min_watts,omitempty"`
	PowerLimitMax    *float64 `json:"power_limit_max_watts,omitempty"`
	PowerLimitPreset *float64 `json:"power_limit_default_watts,omitempty"`
	MinSMClock       *float64 `json:"min_sm_clock_mhz,omitempty"` // that it can be locked at
	MaxSMClock       *float64 `json:"max_sm_clock_mhz,omitempty"`
	MaxMemClock      *float64 `json:"max_mem_clock_mhz,omitempty"`
	ECC              *bool    `json:"ecc,omitempty"`
	MIG              *bool    `json:"mig,omitempty"`
	Persistence      *bool    `json:"persistence,omitempty"`
}

// Throttle is a set of NVML's reasons for a clock below its maximum.
type Throttle uint64

const (
	GPUIdle            Throttle = 1 << iota
	ApplicationClocks           // someone set the clocks
	SoftwarePowerCap            // the power limit holds the clock down
	HardwareSlowdown            // by temperature or power brake, at least halved
	SyncBoost                   // held to the slowest card of a group
	SoftwareThermal             // by the driver, for temperature
	HardwareThermal             // by the hardware, for temperature
	HardwarePowerBrake          // the server's supply asked for it
	DisplayClocks               // a display needs it
)

var throttleNames = [...]string{
	"idle", "application_clocks", "software_power_cap", "hardware_slowdown", "sync_boost",
	"software_thermal", "hardware_thermal", "hardware_power_brake", "display_clocks",
}

// Names lists the reasons, lowest bit first; bits without a name are left out.
func (t Throttle) Names() []string {
	var names []string
	for i, name := range throttleNames {
		if t>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// Heat says whether temperature is among the reasons.
func (t Throttle) Heat() bool { return t&(SoftwareThermal|HardwareThermal) != 0 }

// Others are the processes that are not this one. Inside a container the driver may count
// processes by the host's numbers, so that our own is not recognised: one of those listed is then
// taken to be ours.
func Others(all []Process, self int) []Process {
	rest := slices.DeleteFunc(slices.Clone(all), func(p Process) bool { return p.PID == self })
	if len(rest) == len(all) && len(rest) == 1 {
		return nil
	}
	return rest
}

// optional is a reading, or nil where there is none.
func optional[T any](v T, err error) *T {
	if err != nil {
		return nil
	}
	return &v
}
