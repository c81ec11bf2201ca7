package power

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// ratio after/before over passes: a block is two passes over all loads.
type ratio struct {
	// value is the geometric mean over passes; 0 where there is none, and then not known.
	value float64
	// interval is the lower and the upper end of the 95 % interval; nil with fewer than two passes.
	interval []float64
}

const (
	confidence = 0.95
	resamples  = 4000
	// enoughPasses are the fewest that are resampled, and the fewest at which a comparison may stop
	// for its precision. Resampled means of fewer take too few values for the tails, and the spread
	// of fewer is too often small by chance: both would make intervals miss more than they say.
	enoughPasses = 8
)

// ratioOf summarises the logarithms of the ratio in each pass: a percentile bootstrap over
// passes, widened for their small number as Hesterberg (The American Statistician 69, 2015) does;
// and Student's interval below eight passes. A straight drift adds to one pass of a block what it
// takes from the other: the mean is free of it, and the spread is only larger for it. The same logs and
// seed give the same interval.
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

// bootstrap interval of the mean. The percentiles are those at which a normal sample of this size
// gives Student's interval.
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
