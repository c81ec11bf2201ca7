// Package sgemm multiplies float32 matrices on the CPU, fast and reproducibly.
//
// # The law
//
// Every element of c is one chain of fused multiply-adds over ascending k,
//
//	c = fma(a[k], b[k], c)
//
// from 0, or from c's old value where [Op].Add is set, each rounded to float32, to nearest even.
// So the bits of a result are the same for any number of workers, with every kernel and with their
// plain twin, on every machine, and an element's bits do not depend on the shape around it. Only the
// payload and the sign of a NaN may differ.
//
// # How
//
// c is computed in tiles of 14x32, which stay in registers while k runs over a block of it; between
// two blocks they rest in c, so the chain is not broken. A block of b is packed into panels of 32
// columns once, for all workers; each worker packs the 14 rows of a that it is about to use. Edges
// are padded with zeros, which take part in no element of c.
//
// The kernels, for AVX-512 and for AVX2 with FMA, are written by avo (see _gen). Other machines, and
// builds with the tag purego, have the plain twin, which emulates the instruction and is a hundred
// times slower than AVX-512. On a core of a Xeon where the AVX-512 kernel alone, its operands in the
// nearest cache, reaches 166 GFLOP/s, the layers and the attention of a small transformer run at 110
// to 145, by AVX2 at 65 to 75, and in plain Go at 1.2 (0.4 where most sums are exact, as with operands
// of BF16).
//
// # Contract
//
// Matrices are row-major views, and belong to the caller. c must not overlap a or b. [Mul] panics
// where shapes do not fit, as gonum does, and returns an error only when its context ends; c is
// then partly computed.
package sgemm
