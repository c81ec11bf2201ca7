package power

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// ratio is the ratio after/before over passes. A block consists of two passes over all loads.
type ratio struct {
	// value is the geometric mean over passes; 0 if unknown.
	value float64
	// interval holds the ends of the 95 % interval; nil with fewer than two passes.
	interval []float64
}

const (
	confidence = 0.95
	resamples  = 4000
	// enoughPasses is the least number of passes for the bootstrap, and for a comparison to end because of its
	// precision. With fewer passes, the resampled means have too few different values in the tails, and the spread is
	// often too small by chance. Both effects would make intervals too narrow.
	enoughPasses = 8
)

// ratioOf summarises the logarithms of the passes' ratios. It uses a percentile bootstrap over passes, widened for
// their small number as in Hesterberg (The American Statistician 69, 2015). Below eight passes it uses Student's
// interval. A linear drift has opposite effects in the two passes of a block: the mean is free of drift, and the spread
// is larger. Equal logarithms and seeds give equal intervals.
func ratioOf(logs []float64, seed uint64) ratio {
	n := len(logs)
	if n == 0 {
		return ratio{}
	}
	mean, dev := stat.MeanStdDev(logs, nil)
	r := ratio{value: math.Exp(mean)}
	switch {
	case n < 2:
	case n < enoughPasses:
		half := stats.Student(float64(n-1), confidence) * dev / math.Sqrt(float64(n))
		r.interval = []float64{math.Exp(mean - half), math.Exp(mean + half)}
	default:
		low, high := bootstrap(logs, seed)
		r.interval = []float64{math.Exp(low), math.Exp(high)}
	}
	return r
}

// ratioOfGroups computes the ratio of passes in several arrangements of the memory; each group is one arrangement. The
// result is the mean of the groups' means. The effect of an address cancels if every load has that address in one
// group. The interval is Student's interval, from the spread within groups.
func ratioOfGroups(groups map[int][]float64, seed uint64) ratio {
	keys := slices.Sorted(maps.Keys(groups))
	if len(keys) < 2 {
		var all []float64
		for _, k := range keys {
			all = groups[k]
		}
		return ratioOf(all, seed)
	}
	n, g := 0, float64(len(keys))
	var mean, squares, scale float64
	for _, k := range keys {
		own := stat.Mean(groups[k], nil)
		for _, v := range groups[k] {
			squares += (v - own) * (v - own)
		}
		n += len(groups[k])
		mean += own / g
		scale += 1 / float64(len(groups[k])) / g / g
	}
	r := ratio{value: math.Exp(mean)}
	if free := float64(n) - g; free >= 1 {
		half := stats.Student(free, confidence) * math.Sqrt(squares/free*scale)
		r.interval = []float64{math.Exp(mean - half), math.Exp(mean + half)}
	}
	return r
}

// Ratio returns the geometric mean of ratios, given as logarithms, and its 95 % interval. The interval comes from the
// bootstrap of a comparison's passes, or from Student's distribution for fewer than eight values. Without values the
// mean is 0. With fewer than two values the interval is nil. Equal logarithms and seeds give equal intervals.
func Ratio(logs []float64, seed uint64) (mean float64, interval []float64) {
	r := ratioOf(logs, seed)
	return r.value, r.interval
}

// bootstrap returns the interval of the mean. Its percentiles are chosen so that a normal sample of this size gives
// Student's interval.
func bootstrap(values []float64, seed uint64) (low, high float64) {
	n := len(values)
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	means := make([]float64, resamples)
	for i := range means {
		for range n {
			means[i] += values[rng.IntN(n)] / float64(n)
		}
	}
	slices.Sort(means)
	tail := distuv.UnitNormal.CDF(-stats.Student(float64(n-1), confidence) * math.Sqrt(float64(n)/float64(n-1)))
	return stat.Quantile(tail, stat.LinInterp, means, nil), stat.Quantile(1-tail, stat.LinInterp, means, nil)
}
