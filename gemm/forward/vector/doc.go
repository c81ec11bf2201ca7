// Package vector computes functions of float32 rows: exponentials, activations, and sums of attention weights. Results
// have the same bits on every machine, except for the exact GELU, whose error function is package math's.
//
// AVX-512 kernels compute whole vectors. Go functions compute the remaining elements, and all elements on machines
// without AVX-512. Both have the same bits; only the sign and the payload of a NaN may differ.
package vector
