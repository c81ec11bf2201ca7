package cost

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Features are rates of toggles and set bits on a card's wires, per product, element or byte, in the order of
// [Facts.Features]. [Calibration.Observe] computes them. A rate is NaN if the operands are too small to determine it.
type Features [featureCount]float64

const (
	quadSum = iota
	groupSum
	accumulator
	productMantissa
	productSign
	productAligned
	largestExponent
	streamingMantissa
	streamingExponent
	streamingNonzero
	stationaryNonzero
	stationaryBorders
	busElement
	busSector
	busLine
	busOnes
	busAny
	weightElement
	weightSector
	weightOnes
	weightAny
	bitAlignment
	streamingToggles
	stationaryToggles
	weightNonzero
	featureCount
)

// Feature is the name of one of the [Features] in calibrations, with its meaning.
type Feature struct{ Name, Doc string }

// Features returns the names and meanings of a card's features. A step goes from one row of the streaming operand to
// the next row in its lane. Memory features are of both operands, along K.
func (f *Facts) Features() [featureCount]Feature {
	d, m := &f.Datapath, &f.Memory
	far := func(prefix string, lag int, doc string) Feature {
		return Feature{fmt.Sprintf("%s_%d", prefix, lag), fmt.Sprintf(doc, lag)}
	}
	memory := func(lag int, doc string) Feature { return far("memory", lag, doc) }
	weights := func(lag int) Feature {
		return far("weights", lag, "bits that toggle between two bytes of the weights, %d bytes apart in memory")
	}
	return [featureCount]Feature{
		quadSum:  {"quad_sum", fmt.Sprintf("bits that toggle in a sum of %d products, aligned to the largest of them, from step to step", d.FirstSumProducts)},
		groupSum: {"group_sum", fmt.Sprintf("bits that toggle in a sum of %d products, aligned to the largest of them, from step to step", d.SumProducts)},
		accumulator: {"accumulator", fmt.Sprintf("bits that toggle in a sum of %d products and the accumulator, when the stationary operand advances by %d rows",
			d.SumProducts, d.StationaryRows)},
		productMantissa:   {"product_mantissa", "bits that toggle in a product's mantissa, from step to step"},
		productSign:       {"product_sign", "products that change their sign from step to step"},
		productAligned:    {"product_aligned", fmt.Sprintf("bits that toggle in a product's two's complement, aligned to the largest of %d, from step to step", d.SumProducts)},
		largestExponent:   {"largest_exponent", fmt.Sprintf("bits that toggle in the largest exponent of %d products, from step to step", d.SumProducts)},
		streamingMantissa: {"streaming_mantissa", "mantissa bits of the streaming operand that toggle from step to step"},
		streamingExponent: {"streaming_exponent", "exponent bits of the streaming operand that toggle from step to step"},
		streamingNonzero:  {"streaming_nonzero", fmt.Sprintf("groups of %d elements along K of the streaming operand, with at least one nonzero element", d.SumProducts)},
		stationaryNonzero: {"stationary_nonzero", fmt.Sprintf("groups of %d elements along K of the stationary operand, with at least one nonzero element", d.SumProducts)},
		stationaryBorders: {"stationary_zero_borders", fmt.Sprintf("pairs of elements %d rows apart in the stationary operand, with exactly one zero", d.StationaryRows)},
		busElement:        memory(m.Element, "bits that toggle between two bytes of an operand, %d bytes apart in memory, summed over both operands"),
		busSector:         memory(m.Sector, "bits that toggle between two bytes of an operand, %d bytes apart in memory, summed over both operands"),
		busLine:           memory(m.Line, "bits that toggle between two bytes of an operand, %d bytes apart in memory, summed over both operands"),
		busOnes:           {"memory_ones", "set bits per byte of an operand, summed over both operands"},
		busAny:            {"memory_any", "bits that differ between elements anywhere in an operand, summed over both operands"},
		weightElement:     weights(m.Element),
		weightSector:      weights(m.Sector),
		weightOnes:        {"weights_ones", "set bits per byte of the weights"},
		weightAny:         {"weights_any", "bits that differ between elements anywhere in the weights"},
		bitAlignment:      {"alignment", "equal bits of the two factors of a product (a measure of earlier work; no part of the model)"},
		streamingToggles:  {"streaming_toggles", "bits of the streaming operand that toggle from row to row (no part of the model)"},
		stationaryToggles: {"stationary_toggles", "bits of the stationary operand that toggle from row to row (no part of the model)"},
		weightNonzero:     {"weights_nonzero", "nonzero bytes of the weights"},
	}
}

// Features of the models. With weights from memory there are few products, so the features are the bits of the
// weights in memory. For FP8 the share of nonzero weights is a feature too, because the weights are then the
// streaming operand (see [Model].Swapped). Simpler and earlier models use the other features: docs/cost-accuracy.md
// shows their effect.
var (
	chipFeatures = []int{groupSum, accumulator, productMantissa, productSign, productAligned, streamingMantissa, streamingExponent,
		streamingNonzero, stationaryNonzero, busLine, busOnes, busAny}
	memoryFeatures    = []int{weightElement, weightSector, weightOnes, weightAny, weightNonzero}
	fp8MemoryFeatures = append([]int{streamingNonzero}, memoryFeatures...)
	// streamFeatures are the features of steps from one streaming row to the next.
	streamFeatures = []int{quadSum, groupSum, productMantissa, productSign, productAligned, largestExponent,
		streamingMantissa, streamingExponent}
)

func featuresOf(k kind) []int {
	switch {
	case !k.cold:
		return chipFeatures
	case k.typ == arith.FP8:
		return fp8MemoryFeatures
	}
	return memoryFeatures
}

// featureNames returns the names in the order of Features.
func (f *Facts) featureNames() []string {
	var names []string
	for _, feature := range f.Features() {
		names = append(names, feature.Name)
	}
	return names
}

// rate is a running mean.
type rate struct{ sum, n float64 }

func (r *rate) add(v float64) { r.sum += v; r.n++ }

// addAll adds n events; sum of them are true.
func (r *rate) addAll(sum, n int) { r.sum += float64(sum); r.n += float64(n) }
