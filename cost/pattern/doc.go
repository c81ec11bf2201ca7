// Package pattern is a one-line language for the bits of a matrix: a source and steps.
//
//	normal(0,0.02) | round(4) | sparse(0.5,block=16x16)
//
// [Parse] parses a pattern. [Pattern.Generate] makes the bytes of a matrix of any type with a weights.Format, and
// [Pattern.Block] makes a part of them. The parser, the printer, their errors and docs/patterns.md share one table of
// operations.
//
// [Register] adds a step that is a Go function of an element's value.
//
// # Values
//
// From the source on, every element has the matrix's type. Arithmetic is done in float64, and rounded like
// weights.Format.FromValue, from float32: to nearest, ties to even, at most the largest finite magnitude. In I8,
// values count integer steps. NaN and infinity, which only a tensor can contain, do not change in arithmetic. If a
// step on bits would produce NaN or infinity, the lowest exponent bit is cleared (in F8_E4M3, the lowest mantissa
// bit).
//
// # Randomness
//
// Every random decision is a hash of the seed, the operation's place in the pattern and the element's place in the
// matrix. The same seed gives the same bytes on every machine, with any number of workers, and any block can be made
// alone. Results do not depend on a generator's state, on fused multiplication or on the machine's logarithm.
//
// # Memory and concurrency
//
// Patterns are immutable and safe for concurrent use. A local pattern ([Pattern.Local]) is written directly into the
// result, tens of thousands of elements at a time. sort, reorder, signs(columns) and the transpose of a pattern that
// is not local need their whole matrix in memory. Sorts of 32-bit values need twice more for keys. Cancelling a
// context stops the work within a tenth of a second.
package pattern
