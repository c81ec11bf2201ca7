package cost

import (
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// features are what the rough predictor looks at. Each is relative to random data: 0 for a tensor
// of zeros and about 1 for normal values, but for zeroBorders, of which normal values have none.
type features [featureCount]float64

const (
	signToggles      = iota // between neighbouring outputs
	changes                 // neighbouring outputs, both nonzero, that differ in sign or exponent
	mantissaToggles         // between neighbouring outputs, both nonzero
	zeroBorders             // neighbouring outputs of which one is zero
	nonzeros                // elements that are not zero
	mantissaTogglesK        // between neighbours along K, both nonzero
	mantissaOnes            // mantissa bits that are set
	featureCount
)

// exponentToggles is how many exponent bits differ between two normal values of the same scale:
// the mean over standard deviations from 2⁻⁸ to 1, where weights lie. It swings between 1.3 and
// 2.0 with the scale, hardly differs between formats, and is about twice as large where the
// values straddle 2, the one place at which every exponent bit flips.
const exponentToggles = 1.56

// direction is a tensor seen along one of its two axes.
type direction struct {
	known   bool
	toggles Rates
	borders float64 // share of pairs with exactly one zero
}

// directions are the tensor along N (neighbouring outputs) and along K (neighbouring inputs).
// Neighbours in memory are neighbours along K where outputs are rows (outAxis 0), and along N
// where they are columns (outAxis 1, transposed storage).
func (a Activity) directions(outAxis int) (n, k direction) {
	rows := direction{a.RowPairs() > 0, a.RowRates(), a.ZeroBorderRate()}
	// A run of zeros has a border at either end, but for runs at the ends of the tensor.
	memory := direction{a.MemoryPairs() > 0, a.MemoryRates(), min(1, 2*share(a.ZeroRuns, a.MemoryPairs()))}
	if outAxis == 1 {
		return memory, rows
	}
	return rows, memory
}

// features of a tensor whose outputs lie along outAxis. What it is too small to show, for want of
// neighbours, is taken to be as in random data.
func (a Activity) features(outAxis int) features {
	f, _ := a.DType.Format()
	along, across := a.directions(outAxis)
	bit := 0.5 * float64(f.MantBits)
	x := features{signToggles: 1, changes: 1, mantissaToggles: 1, nonzeros: 1 - a.ZeroShare(),
		mantissaTogglesK: 1, mantissaOnes: a.OnesRates().Mantissa / bit}
	if along.known {
		exponentRate, mantissaRate := a.betweenNonzero(along)
		x[signToggles] = along.toggles.Sign / 0.5
		x[changes] = a.changed(f, along, exponentRate) / changedAtRandom(f)
		x[mantissaToggles] = mantissaRate / bit
		x[zeroBorders] = along.borders
	}
	if across.known {
		_, m := a.betweenNonzero(across)
		x[mantissaTogglesK] = m / bit
	}
	return x
}

// betweenNonzero are the exponent and mantissa toggles per pair, less those at borders of zeros: a
// border toggles every bit that the nonzero side has set.
func (a Activity) betweenNonzero(d direction) (exponent, mantissa float64) {
	if a.Zeros == a.Elements {
		return 0, 0
	}
	perBorder := d.borders / (1 - a.ZeroShare())
	o := a.OnesRates()
	return max(0, d.toggles.Exponent-perBorder*o.Exponent), max(0, d.toggles.Mantissa-perBorder*o.Mantissa)
}

// changed estimates the share of pairs, both nonzero, that differ in sign or exponent, as though
// all their bits toggled independently.
func (a Activity) changed(f weights.Format, d direction, exponentRate float64) float64 {
	both := 1 - a.ZeroShare() - d.borders/2
	if both < 1e-9 {
		return 0
	}
	return both * (1 - (1-min(1, d.toggles.Sign))*still(f, exponentRate/both))
}

func changedAtRandom(f weights.Format) float64 { return 1 - 0.5*still(f, exponentToggles) }

// still is the chance that no exponent bit toggles where rate of them do on average.
func still(f weights.Format, rate float64) float64 {
	n := float64(f.ExpBits)
	if n == 0 {
		return 1
	}
	return math.Pow(1-min(1, rate/n), n)
}

// memoryToggles are the bits of all fields that toggle in memory order, relative to random data.
func (a Activity) memoryToggles() float64 {
	f, _ := a.DType.Format()
	random := 0.5 + 0.5*float64(f.MantBits)
	if f.IsFloat() {
		random += exponentToggles
	}
	if a.MemoryPairs() == 0 {
		return 1
	}
	return a.MemoryRates().Total() / random
}
