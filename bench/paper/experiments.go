package paper

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Experiment is one panel of the paper's Figures 3 to 6.
type Experiment struct {
	ID    string // figure and panel: "3a"
	Title string
	Axis  string // the quantity in which its points differ, with its unit
	// Log is true if the axis is logarithmic. It may still begin with 0.
	Log bool
	// Takeaways are the IDs of the takeaways that the paper draws from the experiment.
	Takeaways []string
	// Apart is true if another experiment has the same w and differs in x only. If only the weights change, the
	// experiment is left out.
	Apart bool
	// Points returns the points for a type, in the order of the axis.
	Points func(t arith.Type) []At
	// Main returns the places of the main points: the points that decide a takeaway's rule, and a middle point if the rule fits a
	// line. Main points are measured with several seeds.
	Main func(t arith.Type) []float64
}

// At is a place on an experiment's axis with its operands: A is x and B is w, both with K along their rows.
type At struct {
	X    float64
	A, B pattern.Pattern
}

// experiments in the paper's order.
var experiments = []Experiment{
	{ID: "3a", Title: "Standard deviation", Axis: "σ", Log: true, Takeaways: []string{"T1"},
		Main: deviations,
		Points: func(t arith.Type) []At {
			return alike(deviations(t), func(x float64) string { return normal(0, x) })
		}},
	{ID: "3b", Title: "Mean", Axis: "mean (σ = 1)", Log: true, Takeaways: []string{"T2"},
		Main: func(t arith.Type) []float64 { return []float64{0, randomMean(t)} },
		Points: func(t arith.Type) []At {
			return alike(means(t), func(x float64) string { return normal(x, 1) })
		}},
	{ID: "3c", Title: "Values from a set", Axis: "values in the set", Log: true, Takeaways: []string{"T3"},
		Main: places(1, 4096),
		Points: func(t arith.Type) []At {
			return alike([]float64{1, 2, 8, 32, 256, 4096}, func(x float64) string { return set(t, x) })
		}},

	{ID: "4a", Title: "Random bit flips", Axis: "probability that a bit flips (%)", Takeaways: []string{"T4", "T7"},
		Main: places(0, 50),
		Points: func(t arith.Type) []At {
			return changed(set(t, 1), []float64{0, 5, 10, 25, 50, 75, 100}, "flip(%v%%)")
		}},
	{ID: "4b", Title: "Least significant bits random", Axis: "random bits", Takeaways: []string{"T5", "T7"},
		Main:   func(t arith.Type) []float64 { return endsAndMiddle(lowBits(t)) },
		Points: func(t arith.Type) []At { return changed(set(t, 1), lowBits(t), "random(low=%v)") }},
	{ID: "4c", Title: "Most significant bits random", Axis: "random bits", Takeaways: []string{"T6", "T7"},
		Main:   func(t arith.Type) []float64 { return endsAndMiddle(highBits(t)) },
		Points: func(t arith.Type) []At { return changed(set(t, 1), highBits(t), "random(high=%v)") }},

	{ID: "5a", Title: "Sorted into rows", Axis: "sorted (%)", Takeaways: []string{"T8"},
		Main:   places(0, 100),
		Points: func(t arith.Type) []At { return crossed(changed(usual(t), quarters, "sort(%v%%)")) }},
	{ID: "5b", Title: "Sorted and aligned", Axis: "sorted (%)", Takeaways: []string{"T9"}, Apart: true,
		Main:   places(0, 100),
		Points: func(t arith.Type) []At { return changed(usual(t), quarters, "sort(%v%%)") }},
	{ID: "5c", Title: "Sorted into columns", Axis: "sorted (%)", Takeaways: []string{"T10"},
		Main:   places(0, 100),
		Points: func(t arith.Type) []At { return crossed(changed(usual(t), quarters, "sort(%v%%,by=columns)")) }},
	{ID: "5d", Title: "Sorted within rows", Axis: "sorted (%)", Takeaways: []string{"T11"},
		Main:   places(0, 100),
		Points: func(t arith.Type) []At { return changed(usual(t), quarters, "sort(%v%%,by=within)") }},

	{ID: "6a", Title: "Sparsity", Axis: "zeros (%)", Takeaways: []string{"T12"},
		Main: places(0, 90),
		Points: func(t arith.Type) []At {
			return changed(usual(t), []float64{0, 25, 50, 75, 90, 100}, "sparse(%v%%)")
		}},
	{ID: "6b", Title: "Sparsity after sorting", Axis: "zeros (%)", Takeaways: []string{"T13"},
		Main: places(0, 25, 35, 50),
		Points: func(t arith.Type) []At {
			return changed(usual(t)+" | sort", []float64{0, 10, 25, 35, 50, 75, 100}, "sparse(%v%%)")
		}},
	{ID: "6c", Title: "Least significant bits zeroed", Axis: "zeroed bits", Takeaways: []string{"T14"},
		Main:   func(t arith.Type) []float64 { return []float64{0, last(lowBits(t), mantissa(t))} },
		Points: func(t arith.Type) []At { return changed(usual(t), lowBits(t), "zero(low=%v)") }},
	{ID: "6d", Title: "Most significant bits zeroed", Axis: "zeroed bits", Takeaways: []string{"T15"},
		Main:   func(t arith.Type) []float64 { return []float64{0, last(highBits(t), signAndExponent(t))} },
		Points: func(t arith.Type) []At { return changed(usual(t), highBits(t), "zero(high=%v)") }},
}

// Experiments returns the IDs of all experiments.
func Experiments() (ids []string) {
	for _, e := range experiments {
		ids = append(ids, e.ID)
	}
	return ids
}

// alike gives A and B the same pattern at every point.
func alike(axis []float64, text func(x float64) string) (list []At) {
	for _, x := range axis {
		p := pattern.MustParse(text(x))
		list = append(list, At{x, p, p})
	}
	return list
}

// changed applies a step to a base pattern, with the place on the axis as argument. At 0 it applies no step, so
// experiments with the same base share their first point.
func changed(base string, axis []float64, step string) []At {
	return alike(axis, func(x float64) string {
		if x == 0 {
			return base
		}
		return base + " | " + fmt.Sprintf(step, x)
	})
}

// crossed returns the points with B not transposed: w gets the transpose of the pattern. At 0 the operands are random and need no
// transpose.
func crossed(list []At) []At {
	for i := range list {
		if at := &list[i]; at.X > 0 {
			at.B = pattern.MustParse(at.A.String() + " | transpose")
		}
	}
	return list
}

// places returns a function for main points that are the same for every type.
func places(at ...float64) func(arith.Type) []float64 {
	return func(arith.Type) []float64 { return at }
}

func endsAndMiddle(axis []float64) []float64 {
	return []float64{axis[0], axis[(len(axis)-1)/2], axis[len(axis)-1]}
}

// last returns the last place on an axis up to a limit.
func last(axis []float64, limit float64) (at float64) {
	for _, x := range axis {
		if x <= limit {
			at = x
		}
	}
	return at
}

var quarters = []float64{0, 25, 50, 75, 100}

// sigma returns the usual standard deviation: the paper's 1024, and 32 for 8-bit types, whose range is smaller.
func sigma(t arith.Type) float64 {
	if width(t) == 8 {
		return 32
	}
	return 1024
}

func normal(mean, sigma float64) string { return fmt.Sprintf("normal(%v,%v)", mean, sigma) }

// usual returns the pattern of the baseline.
func usual(t arith.Type) string { return normal(0, sigma(t)) }

// set returns the pattern that draws every element from a set of size values.
func set(t arith.Type, size float64) string { return fmt.Sprintf("set(%v,%s)", size, usual(t)) }

// width returns the width of an element in bits.
func width(t arith.Type) int { return t.Operand().Bits() }

// deviations returns the standard deviations of experiment 3a, within the type's range. Six times the largest is below the type's largest value
// (in I8 four times, so few values are cut off). The smallest is well above the subnormals. In float16, every
// deviation above 2 lets sums overflow, and scaling gives the same operands, so one of them is enough.
func deviations(t arith.Type) []float64 {
	switch t.Operand() {
	case weights.F16:
		return []float64{0x1p-6, 0x1p-4, 0x1p-2, 1, 1024}
	case weights.F8E4M3:
		return []float64{1, 4, 16, 32, 64}
	case weights.I8:
		return []float64{2, 4, 8, 16, 32}
	}
	return []float64{0x1p-5, 1, 32, 1024, 0x1p15}
}

// means returns the means of experiment 3b. The largest mean is near the end of the type's range, or has neighbouring values that are
// more than one standard deviation apart. float32 has the means of float16.
func means(t arith.Type) []float64 {
	switch t.Operand() {
	case weights.F8E4M3:
		return []float64{0, 1, 4, 16, 64, 256}
	case weights.I8:
		return []float64{0, 2, 8, 32, 64, 120}
	}
	return []float64{0, 1, 8, 64, 512, 2048, 8192}
}

// randomMean returns the largest mean at which elements still differ: the type's spacing there is at most half of the standard
// deviation, 1, so an element has about three random bits. At larger means most elements become equal. The spacing of
// integers is 1 everywhere, so they have no such mean.
func randomMean(t arith.Type) (mean float64) {
	f, _ := t.Operand().Format()
	if !f.IsFloat() {
		return 0
	}
	for _, x := range means(t) {
		if x > 0 && math.Exp2(math.Floor(math.Log2(x)))/math.Exp2(float64(f.MantBits)) <= 0.5 {
			mean = x
		}
	}
	return mean
}

// lowBits returns numbers of least significant bits, most of them within the mantissa.
func lowBits(t arith.Type) []float64 {
	switch width(t) {
	case 8:
		return []float64{0, 1, 2, 3, 4, 6, 8}
	case 16:
		return []float64{0, 2, 4, 6, 8, 10, 16}
	}
	return []float64{0, 4, 8, 12, 16, 23, 32}
}

// highBits returns numbers of most significant bits, most of them within sign and exponent.
func highBits(t arith.Type) []float64 {
	switch width(t) {
	case 8:
		return []float64{0, 1, 2, 3, 4, 6, 8}
	case 16:
		return []float64{0, 1, 2, 4, 6, 9, 16}
	}
	return []float64{0, 1, 3, 6, 9, 16, 32}
}
