package cost

// Signals are what a product's wires do, as [Observe] finds it: rates per product, per element or
// per byte, in the order of [SignalNames]. A rate that the operands are too small to show is NaN.
type Signals [signalCount]float64

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
	bus2
	bus32
	bus64
	busOnes
	busAny
	weightBus2
	weightBus32
	weightOnes
	weightAny
	bitAlignment
	streamingToggles
	stationaryToggles
	signalCount
)

// signals says what each is. Steps are those from one row of the streaming operand to the next,
// in the order of the multipliers (stepShares); memory is both operands', along K.
var signals = [signalCount]struct{ name, doc string }{
	quadSum:           {"quad_sum", "bits that toggle in a sum of 4 products, aligned to the largest of them, from step to step"},
	groupSum:          {"group_sum", "the same in a sum of 16"},
	accumulator:       {"accumulator", "the same in a sum of 16 and what was accumulated before, where the stationary operand goes on by 8 rows"},
	productMantissa:   {"product_mantissa", "bits that toggle in a product's mantissa, from step to step"},
	productSign:       {"product_sign", "products that change their sign from step to step"},
	productAligned:    {"product_aligned", "bits that toggle in a product's two's complement, aligned to the largest of 16, from step to step"},
	largestExponent:   {"largest_exponent", "bits that toggle in the largest exponent of 16 products, from step to step"},
	streamingMantissa: {"streaming_mantissa", "mantissa bits of the streaming operand that toggle from step to step"},
	streamingExponent: {"streaming_exponent", "exponent bits of the streaming operand that toggle from step to step"},
	streamingNonzero:  {"streaming_nonzero", "groups of 16 along K of the streaming operand that are not all zero"},
	stationaryNonzero: {"stationary_nonzero", "the same of the stationary operand"},
	stationaryBorders: {"stationary_zero_borders", "pairs of elements 8 rows apart in the stationary operand of which one is zero"},
	bus2:              {"memory_2", "bits that toggle between bytes 2 apart in memory"},
	bus32:             {"memory_32", "bits that toggle between bytes 32 apart"},
	bus64:             {"memory_64", "bits that toggle between bytes 64 apart"},
	busOnes:           {"memory_ones", "bits that are set, of a byte"},
	busAny:            {"memory_any", "bits that differ between elements anywhere in the matrix"},
	weightBus2:        {"weights_2", "memory_2 of the weights alone"},
	weightBus32:       {"weights_32", "memory_32 of the weights alone"},
	weightOnes:        {"weights_ones", "memory_ones of the weights alone"},
	weightAny:         {"weights_any", "memory_any of the weights alone"},
	bitAlignment:      {"alignment", "bits that are alike in elements that are multiplied (the first paper's measure; no part of the model)"},
	streamingToggles:  {"streaming_toggles", "bits of the streaming operand that toggle from row to row (no part of the model)"},
	stationaryToggles: {"stationary_toggles", "bits of the stationary operand that toggle from row to row (no part of the model)"},
}

// What the model looks at. Weights that come from memory cost what their bits do there: the
// products are few.
var (
	computeSignals = []int{quadSum, groupSum, accumulator, productMantissa, productSign, productAligned,
		largestExponent, streamingMantissa, streamingExponent, streamingNonzero, stationaryNonzero,
		stationaryBorders, bus2, bus32, bus64, busOnes, busAny}
	memorySignals = []int{weightBus2, weightBus32, weightOnes, weightAny}
)

func signalsOf(cold bool) []int {
	if cold {
		return memorySignals
	}
	return computeSignals
}

// SignalNames are the names of Signals' entries.
func SignalNames() []string {
	var names []string
	for _, s := range signals {
		names = append(names, s.name)
	}
	return names
}

// rate is a mean under way.
type rate struct{ sum, n float64 }

func (r *rate) add(v float64) { r.sum += v; r.n++ }

// addAll adds n events of which sum came true.
func (r *rate) addAll(sum, n int) { r.sum += float64(sum); r.n += float64(n) }

// SignalDocs say what each of Signals' entries is, in the order of SignalNames.
func SignalDocs() []string {
	var docs []string
	for _, s := range signals {
		docs = append(docs, s.doc)
	}
	return docs
}
