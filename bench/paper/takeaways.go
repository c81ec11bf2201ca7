package paper

import "github.com/lowtoggle/lowtoggle/cost/arith"

// Takeaway is a statement of the paper with the rule that decides whether it holds.
type Takeaway struct {
	ID    string `json:"id"`
	Claim string `json:"claim"` // the statement in short
	Paper string `json:"paper"` // its measurement on an A100: energy or, if named, power
	Rule  string `json:"rule"`

	effects func([]setupResults) []Effect
}

// takeaways lists the takeaways in the paper's order. The paper's text gives few figures; the figures of float16
// on tensor cores come from its published logs.
var takeaways = []Takeaway{
	{"T1", "The standard deviation does not matter", "no significant change",
		"no two energies differ by 2 % or more, with simultaneous intervals for all pairs",
		inEach(flat("3a", 0.02))},
	{"T2", "Larger means can save, in floating point", "energy falls; no number given",
		"the largest mean that leaves elements random uses less energy than a mean of 0",
		inEach(lowerBy("3b", randomMean, "at mean %v"))},
	{"T3", "Few different values save", "−30 % with one value in all elements",
		"a set of 1 value uses less energy than a set of 4096 values",
		inEach(higher("3c"))},
	{"T4", "Similar bits save", "−30 % with one value in all elements",
		"one value in all elements uses less energy than this value with every bit flipped with probability 1/2",
		inEach(similar("4a"))},
	{"T5", "The more low bits are random, the more energy", "energy rises; no number given",
		"a straight line fitted to energy against the number of random bits rises",
		inEach(rising("4b"))},
	{"T6", "The more high bits are random, the more energy", "energy rises; no number given",
		"a straight line fitted to energy against the number of random bits rises",
		inEach(rising("4c"))},
	{"T7", "FP16 on tensor cores draws the most power", "highest power of four types",
		"on one card at one clock, FP16 on tensor cores draws more mean power in Figure 4 than FP32, FP16 on CUDA cores and INT8",
		drawsMost(arith.FP16, []arith.Type{arith.FP32, arith.FP16CUDA, arith.INT8}, "4a", "4b", "4c")},
	{"T8", "Sorting saves", "FP32: power −13 %; FP16 without tensor cores on an H100: −20 %",
		"sorting into rows lowers the energy",
		inEach(lower("5a"))},
	{"T9", "Sorting with alignment saves more than sorting alone", "−24 % sorted and aligned",
		"sorting with alignment (5b) lowers the energy more than sorting into rows (5a)",
		inEach(below("5b", "5a"))},
	{"T10", "Sorting into columns saves", "energy falls; no number given",
		"sorting into columns lowers the energy",
		inEach(lower("5c"))},
	{"T11", "Sorting within rows saves, but less than sorting fully", "energy falls; no number given",
		"sorting within rows (5d) lowers the energy, but less than sorting fully (5b; 5a where only the weights change)",
		inEach(between("5d", "5b", "5a"))},
	{"T12", "Sparsity saves", "−3.9 % at 50 % zeros, −29 % at 90 %; FP32: power −6 % at 50 %",
		"90 % zeros use less energy than no zeros",
		inEach(lowerBy("6a", func(arith.Type) float64 { return 90 }, "at %v %% zeros"))},
	{"T13", "Sparsity can cost energy in sorted matrices", "most energy at 30 to 40 % zeros",
		"at some share of zeros, energy is higher than without zeros, with simultaneous intervals for all shares",
		inEach(peaked("6b"))},
	{"T14", "Zeroing low bits can save", "−2.7, −12.4 and −17.8 % with 4, 8 and 10 bits zeroed; FP32: power −5 % with 10 bits zeroed",
		"zeroing most or all of the mantissa (INT8: 4 bits) lowers the energy",
		inEach(lowerBy("6c", mantissa, "with %v bits zeroed"))},
	{"T15", "Zeroing high bits can save", "energy falls; no number given",
		"zeroing sign and exponent, or most of these bits (INT8: 4 bits), lowers the energy",
		inEach(lowerBy("6d", signAndExponent, "with %v bits zeroed"))},
}

// inEach returns the effects of a rule in all setups that have the results it needs.
func inEach(r rule) func([]setupResults) []Effect {
	return func(all []setupResults) (list []Effect) {
		for _, s := range all {
			if e, ok := r(s); ok {
				list = append(list, e)
			}
		}
		for i, e := range list {
			list[i] = e.amongAll(len(list))
		}
		return list
	}
}

// mantissa returns the number of mantissa bits of a type's operands; 4 for integers.
func mantissa(t arith.Type) float64 {
	if f, _ := t.Operand().Format(); f.IsFloat() {
		return float64(f.MantBits)
	}
	return 4
}

// signAndExponent returns the number of sign and exponent bits of a type's operands; 4 for integers.
func signAndExponent(t arith.Type) float64 {
	if f, _ := t.Operand().Format(); f.IsFloat() {
		return float64(1 + f.ExpBits)
	}
	return 4
}
