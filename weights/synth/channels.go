package synth

import (
	"math/rand/v2"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// Typical variation of the channels of trained matrices: the standard deviation of the logarithm of their scales, and outlier
// inputs.
const (
	outputSpread = 0.3
	inputSpread  = 0.15

	outlierEvery           = 256 // one input channel in 256 (0.4 %) is an outlier, at least one
	outlierMin, outlierMax = 4, 12
)

// outputScales returns one random factor for each of n output channels, log-normal around 1.
func outputScales(n int, rng *rand.PCG) []float32 { return logNormal(n, outputSpread, rng) }

// inputScales returns one random factor for each of n input channels: log-normal around 1. The factors of outliers are 4 to 12
// times larger.
func inputScales(n int, rng *rand.PCG) []float32 {
	s := logNormal(n, inputSpread, rng)
	r := rand.New(rng)
	outliers := (n + outlierEvery - 1) / outlierEvery
	for _, i := range r.Perm(n)[:outliers] {
		s[i] *= float32(outlierMin + float64(r.Float64()*(outlierMax-outlierMin)))
	}
	return s
}

func logNormal(n int, spread float64, rng *rand.PCG) []float32 {
	s := make([]float32, n)
	quantiles().draw(s, rng)
	for i, z := range s {
		s[i] = float32(elementary.Exp(spread * float64(z)))
	}
	return s
}
