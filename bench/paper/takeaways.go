package paper

import "github.com/lowtoggle/lowtoggle/cost/arith"

// Takeaway is a statement of the paper with the rule that decides on it.
type Takeaway struct {
	ID    string `json:"id"`
	Claim string `json:"claim"` // in short
	Paper string `json:"paper"` // its measurement on an A100: energy or, if named, power
	Rule  string `json:"rule"`

	effects func([]setupResults) []Effect
}

// takeaways lists the takeaways in the paper's order. The paper's text gives few figures; the figures of float16
// on tensor cores are from its published logs.
var takeaways = []Takeaway{
	{"T1", "The standard deviation does not matter", "no significant change",
		"the energy at all σ is within ±1 % of their middle",
		inEach(flat("3a", 0.01))},
	{"T2", "Larger means can save, in floating point", "a fall, no figure",
		"the largest mean uses less energy than a mean of 0",
		inEach(floating(lower("3b")))},
	{"T3", "Few different values save", "constant −30 %",
		"1 value uses less energy than 4096 values",
		inEach(higher("3c"))},
	{"T4", "Similar bits save", "constant −30 %",
		"one value uses less energy than one whose bits are flipped with probability 1/2",
		inEach(similar("4a"))},
	{"T5", "The more low bits are random, the more energy", "a rise, no figure",
		"a straight line through the energy at all counts rises",
		inEach(rising("4b"))},
	{"T6", "The more high bits are random, the more energy", "a rise, no figure",
		"a straight line through the energy at all counts rises",
		inEach(rising("4c"))},
	{"T7", "FP16 on tensor cores draws the most power", "the highest of four types",
		"mean power in Figure 4 is at least 1 % above that of FP32, FP16 on CUDA cores and INT8",
		hungriest(arith.FP16, []arith.Type{arith.FP32, arith.FP16CUDA, arith.INT8}, "4a", "4b", "4c")},
	{"T8", "Sorting saves", "FP32 power −13 %; H100 FP16 without tensor cores −20 %",
		"sorted into rows uses less energy than unsorted",
		inEach(lower("5a"))},
	{"T9", "Sorted and aligned saves more than sorted", "sorted and aligned −24 %",
		"sorted and aligned uses less energy than sorted into rows with B not transposed",
		inEach(below("5b", "5a"))},
	{"T10", "Sorting into columns saves", "a fall, no figure",
		"sorted into columns uses less energy than unsorted",
		inEach(lower("5c"))},
	{"T11", "Sorting within rows saves, but less than sorting fully", "a fall, no figure",
		"sorted within rows uses less energy than unsorted and more than sorted and aligned (where only the weights change: more than sorted into rows)",
		inEach(between("5d", "5b", "5a"))},
	{"T12", "Sparsity saves", "50 % −3.9 %, 90 % −29 %; FP32 power at 50 % −6 %",
		"90 % zeros use less energy than none",
		inEach(lowerBy("6a", func(arith.Type) float64 { return 90 }, " %"))},
	{"T13", "Sparsity can cost energy in sorted matrices", "highest at 30 to 40 % zeros",
		"some share of zeros between none and all uses more energy than none",
		inEach(peaked("6b"))},
	{"T14", "Zeroing low bits can save", "4, 8 and 10 bits −2.7, −12.4 and −17.8 %; FP32 power with 10 bits −5 %",
		"zeroing the mantissa, as far as measured (INT8: 4 bits), lowers the energy",
		inEach(lowerBy("6c", mantissa, " bits"))},
	{"T15", "Zeroing high bits can save", "a fall, no figure",
		"zeroing sign and exponent, as far as measured (INT8: 4 bits), lowers the energy",
		inEach(lowerBy("6d", signAndExponent, " bits"))},
}

// inEach applies a rule to every setup.
func inEach(r rule) func([]setupResults) []Effect {
	return func(all []setupResults) (list []Effect) {
		for _, s := range all {
			if e, ok := r(s); ok {
				list = append(list, e)
			}
		}
		return list
	}
}

// floating leaves integer types out.
func floating(r rule) rule {
	return func(s setupResults) (e Effect, ok bool) {
		if f, _ := s.Type.Operand().Format(); !f.IsFloat() {
			return e, false
		}
		return r(s)
	}
}

func mantissa(t arith.Type) float64 {
	if f, _ := t.Operand().Format(); f.IsFloat() {
		return float64(f.MantBits)
	}
	return 4
}

func signAndExponent(t arith.Type) float64 {
	if f, _ := t.Operand().Format(); f.IsFloat() {
		return float64(1 + f.ExpBits)
	}
	return 4
}
