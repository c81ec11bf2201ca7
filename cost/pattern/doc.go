// Package pattern is a one-line language for the bits of a matrix: a source and steps.
//
//	normal(0,0.02) | round(4) | sparse(0.5,block=16x16)
//
// [Parse] reads it, [Pattern.Generate] makes the bytes of a matrix of any type that has a
// weights.Format, [Pattern.Block] makes a part of them. [Operations] is the language: the parser, the
// printer, its errors and docs/patterns.md come from that one table.
//
// # Values
//
// From the source on, every element is of the matrix's type. Arithmetic is done in float64 and
// rounded back as weights.Format.FromValue does, from float32: to nearest, ties to even, the largest
// finite magnitude at most; in I8 values count integer steps. Arithmetic leaves NaN and infinity,
// which only a tensor can bring in, as they are. Steps on bits clear the lowest exponent bit (in
// F8_E4M3 the lowest mantissa bit) of what they would leave NaN or infinite.
//
// # Randomness
//
// Every random decision is a hash of the seed, the place of the operation in the pattern and the
// place of the element in the matrix. The same seed gives the same bytes on every machine, with any
// number of workers, and any block can be made alone: nothing depends on a generator's state, on
// fused multiplication or on a machine's own logarithm.
//
// # Memory and concurrency
//
// Patterns are immutable and safe for concurrent use. A local pattern ([Pattern.Local]) is written
// straight into the result, tens of thousands of elements at a time; sort, reorder, signs(columns) and
// the transpose of what is not local hold their matrix whole, sorts of 32-bit values hold it twice more
// as keys. Cancelling a context stops the
// work within a tenth of a second.
package pattern
