package power

import (
	"errors"
	"slices"
	"time"
)

// ErrAbsent is the error of a query that this card, driver or build does not support.
var ErrAbsent = errors.New("the card does not support this query or setting")

// Card is the sensors of a GPU. It only reads; a [Governor] changes settings. A query fails with ErrAbsent if the card
// has no such sensor.
type Card interface {
	// Info returns a description of the card as of its opening.
	Info() Info
	// Energy reads the energy counter, in millijoules since the driver was loaded.
	Energy() (uint64, error)
	// Power reads a power sensor in watts.
	Power(Sensor, Scope) (float64, error)
	// Sample reads a power sensor with the driver's time stamp.
	Sample(Sensor, Scope) (Sample, error)
	// Samples returns the readings of the whole card's power that the driver has stored since the given time, oldest
	// first.
	Samples(after time.Time) ([]Sample, error)
	// Temperature returns the temperature of the GPU's die in °C.
	Temperature() (float64, error)
	// SMClock returns the clock of the multiprocessors in MHz.
	SMClock() (float64, error)
	// MemClock returns the clock of the memory in MHz.
	MemClock() (float64, error)
	// Throttle returns the current reasons for a reduced clock.
	Throttle() (Throttle, error)
	// Processes lists the processes on the card, including this one.
	Processes() ([]Process, error)
	// Close closes the card. No query may follow.
	Close() error
}

// Sensor is a kind of power reading.
type Sensor uint8

const (
	// Instant is a short sample: about 25 ms of every 100 ms on A100 and H100.
	Instant Sensor = iota
	// Average is a running mean: over about 1 s on recent cards, so it lags by up to 1.5 s.
	Average
)

// Scope is a part of the board.
type Scope uint8

const (
	GPU Scope = iota // the whole card
	Module
	Memory
)

// Sample is a power reading with its time by the host's wall clock; see [Clock.Of].
type Sample struct {
	At    time.Time
	Watts float64
}

// Process is a process on the card.
type Process struct {
	PID   int    `json:"pid"`
	Bytes uint64 `json:"bytes,omitempty"` // device memory in use; absent if unknown
}

// Info describes a card. A nil pointer or an empty string means unknown.
type Info struct {
	Name             string   `json:"name,omitempty"`
	UUID             string   `json:"uuid,omitempty"`
	Driver           string   `json:"driver,omitempty"`
	CUDA             string   `json:"cuda,omitempty"` // newest CUDA version that the driver supports, such as "13.0"
	ComputeMode      string   `json:"compute_mode,omitempty"`
	MemoryBytes      *uint64  `json:"memory_bytes,omitempty"`
	MemoryUsed       *uint64  `json:"memory_used_bytes,omitempty"` // in use when the card was opened, by all processes and the driver
	PowerLimit       *float64 `json:"power_limit_watts,omitempty"` // the enforced limit
	PowerLimitMin    *float64 `json:"power_limit_min_watts,omitempty"`
	PowerLimitMax    *float64 `json:"power_limit_max_watts,omitempty"`
	PowerLimitPreset *float64 `json:"power_limit_default_watts,omitempty"`
	MinSMClock       *float64 `json:"min_sm_clock_mhz,omitempty"` // lowest clock that can be locked
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
	ApplicationClocks           // the application clocks are set below the maximum
	SoftwarePowerCap            // the power limit is reached
	HardwareSlowdown            // temperature or power brake; the clock is at most half
	SyncBoost                   // the clock follows the slowest card of a group
	SoftwareThermal             // the driver limits the temperature
	HardwareThermal             // the hardware limits the temperature
	HardwarePowerBrake          // the server's power supply requests a lower clock
	DisplayClocks               // the setting of a display limits the clock
)

var throttleNames = [...]string{
	"idle", "application_clocks", "software_power_cap", "hardware_slowdown", "sync_boost",
	"software_thermal", "hardware_thermal", "hardware_power_brake", "display_clocks",
}

// Names returns the names of the reasons, lowest bit first. Unknown bits have no name.
func (t Throttle) Names() []string {
	var names []string
	for i, name := range throttleNames {
		if t>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

// Heat reports whether temperature is among the reasons.
func (t Throttle) Heat() bool { return t&(SoftwareThermal|HardwareThermal) != 0 }

// Others returns the processes other than self, a process ID. In a container, the driver may use the host's process
// IDs, and self is then not in the list. If the list then has a single process, it is assumed to be self.
func Others(all []Process, self int) []Process {
	rest := slices.DeleteFunc(slices.Clone(all), func(p Process) bool { return p.PID == self })
	if len(rest) == len(all) && len(rest) == 1 {
		return nil
	}
	return rest
}

// optional returns a reading, or nil after an error.
func optional[T any](v T, err error) *T {
	if err != nil {
		return nil
	}
	return &v
}
