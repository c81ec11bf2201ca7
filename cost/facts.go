package cost

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// Facts are the properties of a card that a prediction needs besides its measurements. They are read from the calibration's file;
// every field is required there.
type Facts struct {
	Datapath  Datapath   `json:"datapath"`
	Memory    MemoryLags `json:"memory"`
	LagShares LagShares  `json:"lag_shares"`
	Kernels   Kernels    `json:"kernels"`
	Power     PowerLaw   `json:"power"`
	Settings  Settings   `json:"settings"`
}

// Datapath describes the order in which the multipliers see the operands' rows and products.
type Datapath struct {
	// SumProducts products along K are added at once, FirstSumProducts of them first.
	SumProducts      int `json:"sum_products"`
	FirstSumProducts int `json:"first_sum_products"`
	// AlignedBits of a product are kept when it is aligned to the largest exponent of its sum.
	AlignedBits int `json:"aligned_bits"`
	// StationaryRows of the stationary operand are held at a time.
	StationaryRows int `json:"stationary_rows"`
	// Rows of the streaming operand arrive in runs of StreamingRun neighbours. StreamingLanes lanes take
	// turns, so after a run's last row a lane continues with the run that is StreamingLanes runs further.
	StreamingRun   int `json:"streaming_run"`
	StreamingLanes int `json:"streaming_lanes"`
	// StreamingSteps are the weights of a lane's steps from row to row.
	StreamingSteps []StreamingStep `json:"streaming_steps"`
}

// StreamingStep is the weight of the steps that begin at some places of a run.
type StreamingStep struct {
	Places []int   `json:"places"` // in the run, from 0
	Share  float64 `json:"share"`  // of all steps; the shares sum to 1
}

// MemoryLags are the distances, in bytes, between bytes that follow one another on memory's wires.
type MemoryLags struct {
	Element int `json:"element_lag_bytes"` // neighbouring elements
	Sector  int `json:"sector_lag_bytes"`  // neighbouring sectors
	Line    int `json:"line_lag_bytes"`    // neighbouring cache lines
}

// LagShares are the shares of a product's energy that follow the weights' bits from place to place, as
// fitted for the card's BF16 products.
type LagShares struct {
	Streaming float64 `json:"streaming"` // rows of a streaming operand, weights on chip
	Line      float64 `json:"line"`      // Memory.Line, weights on chip
	Element   float64 `json:"element"`   // Memory.Element, weights from memory
	Sector    float64 `json:"sector"`    // Memory.Sector, weights from memory
}

// Kernels describes how the card's libraries run products.
type Kernels struct {
	// ResultProducts is the energy of converting and writing one result, in products.
	ResultProducts float64 `json:"result_products"`
	// MemoryBoundTokens is the largest number of tokens at which reading the weights bounds a product.
	MemoryBoundTokens int `json:"memory_bound_tokens"`
	// StreamedTokensRatio is the number of tokens for each output from which the library streams the
	// tokens, whatever role the weights have.
	StreamedTokensRatio int `json:"streamed_tokens_per_output"`
	// TileTokens is the height of a tile of results: fewer tokens take as long.
	TileTokens int `json:"tile_tokens"`
	// LaunchSeconds is the time that a product with weights from memory takes besides reading them.
	LaunchSeconds float64 `json:"launch_seconds"`
	// Dequantised describes products with four-bit weights. Default: they are predicted like BF16 products.
	Dequantised *Dequantised `json:"dequantised,omitempty"`
	// Scaled describes FP8 products with several scales. The key is the part of the weights that shares a scale; see
	// [quant.Format].Per. Products without an entry are predicted like products with one scale.
	Scaled map[string]Scaled `json:"scaled,omitempty"`
}

// Scaled compares a kernel for FP8 codes with several scales to the kernel with one scale. Operands is the share of the energy
// that depends on the operands' bits, divided by the same share of the kernel with one scale.
type Scaled struct {
	Operands float64 `json:"operands"`
	// With few tokens, FewOperands is that ratio. Sums is the share of the energy for adding scaled sums, which all-zero
	// weights save.
	FewOperands float64 `json:"few_operands"`
	Sums        float64 `json:"sums"`
}

// Dequantised holds the shares of dequantising kernels' energy that depend on the bits of the weights.
type Dequantised struct {
	// Operands is the share of the dequantised weights in the tensor cores, with many tokens and the weights stationary.
	Operands float64 `json:"operands"`
	// StreamingOperands is the same share with the weights streaming.
	StreamingOperands float64 `json:"streaming_operands"`
	// With few tokens, FewOperands is the same share, and Codes the share of the packed codes read from memory.
	FewOperands float64 `json:"few_operands"`
	Codes       float64 `json:"codes"`
}

// PowerLaw is how power follows activity and clock. Power is static, or proportional to activity and to a
// power of the clock.
type PowerLaw struct {
	Static        Likely `json:"static_watts"`
	ClockExponent Likely `json:"clock_exponent"`
	// Memory is the power of reading weights at the full rate, which does not follow the clock.
	Memory Likely `json:"memory_watts"`
	// VoltageFloor is the share of the highest clock below which the voltage stays constant.
	VoltageFloor Likely `json:"voltage_floor_clock_share"`
	// MemoryReach is the share of the highest clock below which multiprocessors ask too slowly to keep
	// the memory busy.
	MemoryReach Likely `json:"memory_reach_clock_share"`
	// MemoryDraw is the power drawn while waiting for memory, over the predicted power.
	MemoryDraw Likely `json:"memory_bound_draw"`
	// Bursts is the clock while the card's mean power is below its limit, over the clock of the same work at the limit. Default:
	// nothing is predicted about such work.
	Bursts *Likely `json:"burst_clock_ratio,omitempty"`
}

// Likely is a value and the range that it has on cards of this kind.
type Likely struct {
	Usual float64 `json:"usual"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Settings are the limits of the card's settings.
type Settings struct {
	LowestClock  float64 `json:"lowest_clock_mhz"`
	HighestClock float64 `json:"highest_clock_mhz"`
	LowestCap    float64 `json:"lowest_cap_watts"`
	DefaultCap   float64 `json:"default_cap_watts"`
}

// bandUnit is what rows of a sample begin at a multiple of.
const bandUnit = 16

// maxSumProducts keeps a tile, twice as long, within the samples of memory.
const maxSumProducts = 64

// validate reports the first field that is out of its range.
func (f *Facts) validate() error {
	d, m, k, p := &f.Datapath, &f.Memory, &f.Kernels, &f.Power
	type field struct {
		name             string
		value, low, high float64
	}
	fields := []field{
		{"datapath.sum_products", float64(d.SumProducts), 1, maxSumProducts},
		{"datapath.first_sum_products", float64(d.FirstSumProducts), 1, float64(d.SumProducts)},
		{"datapath.aligned_bits", float64(d.AlignedBits), 8, 48},
		{"datapath.stationary_rows", float64(d.StationaryRows), 1, 64},
		{"datapath.streaming_run", float64(d.StreamingRun), 2, bandUnit},
		{"datapath.streaming_lanes", float64(d.StreamingLanes), 1, bandUnit / float64(max(1, d.StreamingRun))},
		{"memory.element_lag_bytes", float64(m.Element), 1, chunk / 2},
		{"memory.sector_lag_bytes", float64(m.Sector), float64(m.Element + 1), chunk / 2},
		{"memory.line_lag_bytes", float64(m.Line), float64(m.Sector + 1), chunk / 2},
		{"lag_shares.streaming", f.LagShares.Streaming, 0, 1},
		{"lag_shares.line", f.LagShares.Line, 0, 1},
		{"lag_shares.element", f.LagShares.Element, 0, 1},
		{"lag_shares.sector", f.LagShares.Sector, 0, 1},
		{"kernels.result_products", k.ResultProducts, 0, 1e6},
		{"kernels.memory_bound_tokens", float64(k.MemoryBoundTokens), 0, 1 << 20},
		{"kernels.streamed_tokens_per_output", float64(k.StreamedTokensRatio), 1, 1 << 20},
		{"kernels.tile_tokens", float64(k.TileTokens), 1, 1 << 20},
		{"kernels.launch_seconds", k.LaunchSeconds, 0, 1},
		{"settings.highest_clock_mhz", f.Settings.HighestClock, 1, 1e5},
		{"settings.lowest_clock_mhz", f.Settings.LowestClock, 1, f.Settings.HighestClock},
		{"settings.default_cap_watts", f.Settings.DefaultCap, 1, 1e5},
		{"settings.lowest_cap_watts", f.Settings.LowestCap, 1, f.Settings.DefaultCap},
	}
	if q := k.Dequantised; q != nil {
		fields = append(fields, field{"kernels.dequantised.operands", q.Operands, 0, 1},
			field{"kernels.dequantised.streaming_operands", q.StreamingOperands, 0, 1},
			field{"kernels.dequantised.few_operands", q.FewOperands, 0, 1}, field{"kernels.dequantised.codes", q.Codes, 0, 1 - q.FewOperands})
	}
	for _, per := range slices.Sorted(maps.Keys(k.Scaled)) {
		const most = 2
		s, name := k.Scaled[per], "kernels.scaled."+per
		fields = append(fields, field{name + ".operands", s.Operands, 0, most}, field{name + ".few_operands", s.FewOperands, 0, most}, field{name + ".sums", s.Sums, 0, 1})
	}
	bursts := Likely{1, 1, 1}
	if p.Bursts != nil {
		bursts = *p.Bursts
	}
	for _, l := range []struct {
		name string
		Likely
		low, high float64
	}{
		{"power.burst_clock_ratio", bursts, 1, 5},
		{"power.static_watts", p.Static, 0, 1e4},
		{"power.clock_exponent", p.ClockExponent, 1.01, 5},
		{"power.memory_watts", p.Memory, 0, 1e4},
		{"power.voltage_floor_clock_share", p.VoltageFloor, 0, 1},
		{"power.memory_reach_clock_share", p.MemoryReach, 0, 1},
		{"power.memory_bound_draw", p.MemoryDraw, 0.1, 10},
	} {
		fields = append(fields, field{l.name + ".low", l.Low, l.low, l.high}, field{l.name + ".high", l.High, l.Low, l.high},
			field{l.name + ".usual", l.Usual, l.Low, l.High})
	}
	for _, v := range fields {
		if !(v.value >= v.low && v.value <= v.high) {
			return fmt.Errorf("facts.%s is %g: it must be from %g to %g", v.name, v.value, v.low, v.high)
		}
	}
	if d.SumProducts%d.FirstSumProducts != 0 {
		return errors.New("facts.datapath.first_sum_products does not divide sum_products")
	}
	if bits.OnesCount(uint(d.StreamingRun)) != 1 || bits.OnesCount(uint(d.StreamingLanes)) != 1 {
		return errors.New("facts.datapath.streaming_run and streaming_lanes must be powers of two")
	}
	return d.validateSteps()
}

func (d *Datapath) validateSteps() error {
	sum, seen := 0.0, map[int]bool{}
	for i, s := range d.StreamingSteps {
		if !(s.Share >= 0 && s.Share <= 1) || len(s.Places) == 0 {
			return fmt.Errorf("facts.datapath.streaming_steps[%d]: needs places and a share from 0 to 1", i)
		}
		sum += s.Share
		for _, p := range s.Places {
			if p < 0 || p >= d.StreamingRun || seen[p] {
				return fmt.Errorf("facts.datapath.streaming_steps[%d]: place %d is not in the run, or is given twice", i, p)
			}
			seen[p] = true
		}
	}
	if len(seen) != d.StreamingRun || !(sum > 0.999 && sum < 1.001) {
		return errors.New("facts.datapath.streaming_steps must give every place of the run a step, with shares that sum to 1")
	}
	return nil
}
