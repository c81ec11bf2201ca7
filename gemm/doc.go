// Package gemm multiplies by linear layers: y[M,N] = x[M,K]·w[N,K]ᵀ with M tokens, N outputs and K
// inputs.
//
// A [Problem] says the shape, the arithmetic and which operand the weights are; a [Matrix] holds
// an operand's bits, row-major, as a safetensors file does. [Multiply] computes the product on the CPU: it checks
// numbers, and its power means nothing. Package gemm/cuda multiplies on a GPU. [Compare] checks a GPU's result
// against the CPU's, within the [Tolerance] that the type's arithmetic allows.
//
// Infinities and NaNs in operands or results are errors ([ErrNotFinite]): the energy of such a product says
// nothing about the weights.
package gemm
