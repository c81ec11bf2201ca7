// Package sgemm multiplies float32 matrices on the CPU, fast and reproducibly.
//
// # Definition
//
// Every element of c is one chain of fused multiply-adds over ascending k,
//
//	c = fma(a[k], b[k], c)
//
// from 0, or from c's old value if [Op].Add is set. Each step is rounded to float32, to nearest even. So the
// bits of a result are the same for any number of workers, with every kernel, and on every machine. An
// element's bits do not depend on the shape around it. Only the payload and the sign of a NaN may differ.
//
// # Implementation
//
// c is computed in tiles of 14x32. A tile stays in registers while k runs over a block, and in c between two
// blocks, so its chains are not broken. A block of b is packed into panels of 32 columns once, for all
// workers. Each worker packs the 14 rows of a that it uses next. Edges are padded with zeros, which take part
// in no element of c. A caller that multiplies by the same b several times packs it once ([Pack]).
//
// avo writes the kernels, for AVX-512 and for AVX2 with FMA (see _gen). Other machines, and builds with the
// tag purego, use the same loop in Go, which emulates the instruction and is a hundred times slower than
// AVX-512. On a core of a Xeon the AVX-512 kernel reaches 166 GFLOP/s with operands in the first-level cache.
// There the layers and the attention of a small transformer run at 110 to 145 GFLOP/s, by AVX2 at 65 to 75,
// and in Go at 1.2 (0.4 if most sums are exact, as with operands of BF16).
//
// # Contract
//
// Matrices are row-major views and belong to the caller. c must not overlap a or b. [Mul] panics if shapes do
// not fit, as gonum does. It returns an error only if its context ends; c is then partly computed.
package sgemm
