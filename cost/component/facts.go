package component

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Facts are the properties of a card that a model needs besides its readings. They are read from the components'
// file. In the file, every field is required.
type Facts struct {
	Tiles Tiles  `json:"tiles"`
	Clock Clocks `json:"clock"`
	// RandomMoved is [Kernel].Moved of random normal operands, by type.
	RandomMoved map[arith.Type]float64 `json:"random_moved_bits"`
	// SensorScale is an error of the memory's sensor, in watts. In the fit it has the same weight as an error of 100
	// % of a kernel's power.
	SensorScale float64 `json:"memory_sensor_scale_watts"`
}

// Tiles describes how the card's library divides a product into tiles, and how much of the operands the cache holds.
type Tiles struct {
	// L2 is the size of the cache in bytes, for devices that do not report it. The cache has CacheCopies copies of
	// its content, one in each partition.
	L2          float64 `json:"usual_l2_bytes"`
	CacheCopies float64 `json:"l2_copies"`
	// Wave is the number of tiles that fill the card once. Tiles have the largest possible size for this number,
	// within Smallest and Largest, in results.
	Wave     float64 `json:"tiles_of_a_wave"`
	Smallest float64 `json:"smallest_tile_results"`
	Largest  float64 `json:"largest_tile_results"`
	// ShortSide is the ratio of a tile's shorter side to the side of a square with as many results.
	ShortSide float64 `json:"short_side_share"`
	// SharedBy is the number of tiles in a cluster that share the rows of their longer side.
	SharedBy float64 `json:"long_side_shared_by"`
}

// Clocks describes the quantities that depend on the clock.
type Clocks struct {
	// Exponent is the clock's exponent for energies. The power of the awake part has an exponent larger by 1. Errors
	// account for Low and High.
	Exponent cost.Likely `json:"energy_exponent"`
	// Overlap is the sharpness of the transition from compute-bound to memory-bound kernels: with times t of both
	// parts, the sum of t^Overlap is the kernel's time^Overlap.
	Overlap float64 `json:"overlap_exponent"`
	// MemoryTime is the memory's share of the time of the kernel with the highest memory rate.
	MemoryTime float64 `json:"memory_time_share"`
	Lowest     float64 `json:"lowest_clock_share"` // share of the highest clock
	Step       float64 `json:"clock_step_mhz"`
	// LowestAdvised is the lowest clock of an Advice, in MHz.
	LowestAdvised float64 `json:"lowest_advised_clock_mhz"`
}

// validate returns an error for the first field that is out of its range.
func (f *Facts) validate() error {
	t, c := &f.Tiles, &f.Clock
	for _, v := range []struct {
		name             string
		value, low, high float64
	}{
		{"tiles.usual_l2_bytes", t.L2, 1, 1e12},
		{"tiles.l2_copies", t.CacheCopies, 1, 64},
		{"tiles.tiles_of_a_wave", t.Wave, 1, 1e6},
		{"tiles.smallest_tile_results", t.Smallest, 1, 1e9},
		{"tiles.largest_tile_results", t.Largest, t.Smallest, 1e9},
		{"tiles.short_side_share", t.ShortSide, 0.01, 1},
		{"tiles.long_side_shared_by", t.SharedBy, 1, 64},
		{"clock.energy_exponent.low", c.Exponent.Low, 0, 5},
		{"clock.energy_exponent.high", c.Exponent.High, c.Exponent.Low, 5},
		{"clock.energy_exponent.usual", c.Exponent.Usual, c.Exponent.Low, c.Exponent.High},
		{"clock.overlap_exponent", c.Overlap, 1, 100},
		{"clock.memory_time_share", c.MemoryTime, 0, 1},
		{"clock.lowest_clock_share", c.Lowest, 0.001, 1},
		{"clock.clock_step_mhz", c.Step, 1, mostMHz},
		{"clock.lowest_advised_clock_mhz", c.LowestAdvised, 1, mostMHz},
		{"memory_sensor_scale_watts", f.SensorScale, leastWatts, mostWatts},
	} {
		if !(v.value >= v.low && v.value <= v.high) {
			return fmt.Errorf("facts.%s is %g: it must be from %g to %g", v.name, v.value, v.low, v.high)
		}
	}
	for _, typ := range arith.Types() {
		if v, ok := f.RandomMoved[typ]; !ok || !(v >= 0 && v <= 10) {
			return fmt.Errorf("facts.random_moved_bits.%s is missing, or is not from 0 to 10", typ)
		}
	}
	return nil
}
