package main

import (
	"math"
	"math/rand/v2"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

const (
	// sigma is the base's standard deviation.
	sigma = 0.02
	// step is the spacing of levels-4: the power of two nearest to sigma.
	step = 0x1p-6
)

// bf16 and its masks read and write the elements' bits.
var (
	bf16, _  = weights.BF16.Format()
	sign     = bf16.SignMask()
	oneSigma = bf16.FromValue(sigma)
)

// base is the random matrix that every pattern changes, and the seed for what else is random.
type base struct {
	gemm.Matrix
	seed uint64
}

func newBase(rows, cols int, seed uint64) base {
	return base{gemm.Normal(weights.BF16, rows, cols, 0, sigma, seed), seed}
}

func (b base) elem(r, c int) uint32 { return bf16.Elem(b.Data, r*b.Cols+c) }

// pattern is one way to choose weights.
type pattern struct {
	name string
	doc  string
	// row gives a matrix's row r: its elements' bits, to be asked for once each from column 0 on.
	// Rows do not depend on each other, so workers may take them in any order.
	row func(b base, r int) func(c int) uint32
}

// patterns lists them in the order of the file.
var patterns = []pattern{
	{"random", "the base", each(func(w uint32) uint32 { return w })},
	{"zeros", "+0", each(func(uint32) uint32 { return 0 })},
	{"constant", "σ", each(func(uint32) uint32 { return oneSigma })},
	{"rows-identical", "every row is the base's first", rowOf(func(int) int { return 0 })},
	{"rows-in-runs-of-4", "every row is the first of its four", rowOf(func(r int) int { return r - r%4 })},
	{"low-4-zeroed", "the 4 low mantissa bits cleared", each(func(w uint32) uint32 { return w &^ 0xF })},
	{"low-7-zeroed", "all 7 mantissa bits cleared", each(func(w uint32) uint32 { return w &^ 0x7F })},
	{"half-zeroed", "each element +0 with probability ½", halfZeroed(1)},
	{"half-zeroed-64x64", "each 64×64 block +0 with probability ½", halfZeroed(64)},
	{"levels-4", "nearest multiple of 2^-6, not clamped: 99.96 % lie within ±4 steps", each(level)},
	{"shifted-8-sigma", "8σ added, rounded to nearest", each(shift)},
	{"one-magnitude", "σ with the base's signs", each(func(w uint32) uint32 { return w&sign | oneSigma })},
	{"absolute", "the base without its signs", each(func(w uint32) uint32 { return w &^ sign })},
}

// each changes every element by itself.
func each(change func(w uint32) uint32) func(base, int) func(int) uint32 {
	return func(b base, r int) func(int) uint32 {
		return func(c int) uint32 { return change(b.elem(r, c)) }
	}
}

// rowOf takes row from(r) of the base as row r.
func rowOf(from func(r int) int) func(base, int) func(int) uint32 {
	return func(b base, r int) func(int) uint32 {
		source := from(r)
		return func(c int) uint32 { return b.elem(source, c) }
	}
}

// halfZeroed zeroes square blocks, each with probability ½; those at the edges may be cut off.
func halfZeroed(size int) func(base, int) func(int) uint32 {
	return func(b base, r int) func(int) uint32 {
		// The base's rows have the generators of the seed itself.
		rng := rand.New(rand.NewPCG(^b.seed, uint64(r/size)))
		var zero bool
		return func(c int) uint32 {
			if c%size == 0 {
				zero = rng.IntN(2) == 0
			}
			if zero {
				return 0
			}
			return b.elem(r, c)
		}
	}
}

// level is the nearest multiple of step, ties to even, with one zero, as the pass grid has.
func level(w uint32) uint32 {
	n := math.RoundToEven(float64(bf16.Value(w)) / step)
	if n == 0 {
		return 0
	}
	return bf16.FromValue(float32(n * step))
}

func shift(w uint32) uint32 { return bf16.FromValue(bf16.Value(w) + 8*sigma) }
