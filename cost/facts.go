package cost

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// Facts are the properties of a card that a prediction needs besides its measurements. They are read from the
// calibration's file. In the file, every field is required.
type Facts struct {
	Datapath  Datapath   `json:"datapath"`
	Memory    MemoryLags `json:"memory"`
	LagShares LagShares  `json:"lag_shares"`
	Kernels   Kernels    `json:"kernels"`
	Power     PowerLaw   `json:"power"`
	Settings  Settings   `json:"settings"`
}

// Datapath describes the order in which the multipliers process the operands' rows and products.
type Datapath struct {
	// SumProducts is the number of products along K that are added at once. FirstSumProducts of them are added first.
	SumProducts      int `json:"sum_products"`
	FirstSumProducts int `json:"first_sum_products"`
	// AlignedBits is the number of bits of a product that are kept when the product is aligned to the largest
	// exponent of its sum.
	AlignedBits int `json:"aligned_bits"`
	// StationaryRows is the number of rows of the stationary operand that are held at a time.
	StationaryRows int `json:"stationary_rows"`
	// StreamingRun is the number of neighbouring rows of the streaming operand that arrive in one run. StreamingLanes
	// lanes take turns: after a run's last row, a lane continues with the run that is StreamingLanes runs further.
	StreamingRun   int `json:"streaming_run"`
	StreamingLanes int `json:"streaming_lanes"`
	// StreamingSteps are the weights of a lane's steps from row to row.
	StreamingSteps []StreamingStep `json:"streaming_steps"`
}

// StreamingStep is the weight of the steps that begin at some places of a run.
type StreamingStep struct {
	Places []int   `json:"places"` // places in the run, from 0
	Share  float64 `json:"share"`  // share of all steps; the shares sum to 1
}

// MemoryLags are the distances in bytes between bytes that follow one another on memory's wires.
type MemoryLags struct {
	Element int `json:"element_lag_bytes"` // between neighbouring elements
	Sector  int `json:"sector_lag_bytes"`  // between neighbouring sectors
	Line    int `json:"line_lag_bytes"`    // between neighbouring cache lines
}

// LagShares are shares of a product's energy that depend on toggles between the weights' bits at a distance, fitted
// to the card's BF16 products.
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
	// StreamedTokensRatio is the least number of tokens per output at which the library streams the tokens, in either
	// role of the weights.
	StreamedTokensRatio int `json:"streamed_tokens_per_output"`
	// TileTokens is the number of tokens in a tile of results. Fewer tokens take as long.
	TileTokens int `json:"tile_tokens"`
	// LaunchSeconds is the time of a product with weights from memory in addition to reading the weights, in seconds.
	LaunchSeconds float64 `json:"launch_seconds"`
	// Dequantised describes products with four-bit weights. Default: they are predicted as BF16 products.
	Dequantised *Dequantised `json:"dequantised,omitempty"`
	// Scaled describes FP8 products with several scales. The key is the part of the weights that shares a scale; see
	// [quant.Format].Per. Products without an entry are predicted as products with one scale.
	Scaled map[string]Scaled `json:"scaled,omitempty"`
}

// Scaled compares a kernel for FP8 codes with several scales to the kernel with one scale. Operands is the share of
// the energy that depends on the operands' bits, relative to that share in the kernel with one scale.
type Scaled struct {
	Operands float64 `json:"operands"`
	// FewOperands is this ratio with few tokens. Sums is the share of the energy for adding scaled sums, which
	// all-zero weights save.
	FewOperands float64 `json:"few_operands"`
	Sums        float64 `json:"sums"`
}

// Dequantised holds the shares of dequantising kernels' energy that depend on the bits of the weights.
type Dequantised struct {
	// Operands is the share of the dequantised weights in the tensor cores, with many tokens and the weights stationary.
	Operands float64 `json:"operands"`
	// StreamingOperands is the same share with the weights streaming.
	StreamingOperands float64 `json:"streaming_operands"`
	// FewOperands is this share with few tokens, and Codes the share of the packed codes that are read from memory.
	FewOperands float64 `json:"few_operands"`
	Codes       float64 `json:"codes"`
}

// PowerLaw is the dependence of power on activity and clock. Power is static, or proportional to activity and to a
// power of the clock.
type PowerLaw struct {
	Static        Likely `json:"static_watts"`
	ClockExponent Likely `json:"clock_exponent"`
	// Memory is the power of reading weights at the full rate. It does not depend on the clock.
	Memory Likely `json:"memory_watts"`
	// VoltageFloor is the share of the highest clock below which the voltage is constant.
	VoltageFloor Likely `json:"voltage_floor_clock_share"`
	// MemoryReach is the share of the highest clock below which multiprocessors read too slowly to keep the memory
	// busy.
	MemoryReach Likely `json:"memory_reach_clock_share"`
	// MemoryDraw is the power drawn while waiting for memory, relative to the predicted power.
	MemoryDraw Likely `json:"memory_bound_draw"`
	// Bursts is the clock while the card's mean power is below its limit, relative to the clock of the same work at
	// the limit. Default: no such work is predicted.
	Bursts *Likely `json:"burst_clock_ratio,omitempty"`
}

// Likely is a value with its range on cards of this kind.
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

// bandUnit divides the first row of every band of a sample.
const bandUnit = 16

// maxSumProducts limits a tile, which is twice as long, to the length of the samples of memory.
const maxSumProducts = 64

// validate returns an error for the first field that is out of its range.
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
		return errors.New("facts.datapath.sum_products is not a multiple of first_sum_products")
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
			return fmt.Errorf("facts.datapath.streaming_steps[%d] must have places and a share from 0 to 1", i)
		}
		sum += s.Share
		for _, p := range s.Places {
			if p < 0 || p >= d.StreamingRun || seen[p] {
				return fmt.Errorf("facts.datapath.streaming_steps[%d]: place %d is outside the run, or occurs twice", i, p)
			}
			seen[p] = true
		}
	}
	if len(seen) != d.StreamingRun || !(sum > 0.999 && sum < 1.001) {
		return errors.New("facts.datapath.streaming_steps must contain every place of the run, and its shares must sum to 1")
	}
	return nil
}
