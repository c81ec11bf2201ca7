// Package vector computes functions of float32 rows: exponentials, activations, sums of attention weights. They
// have the same bits on every machine, except the exact GELU, whose error function is package math's.
//
// Kernels in AVX-512 compute whole vectors. Functions in Go compute the remaining elements, and all elements on
// machines without the kernels. Both have the same bits; only the sign and the payload of a NaN may differ.
package vector
