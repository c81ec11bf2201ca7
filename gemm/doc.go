// Package gemm describes and computes products of linear layers: y[M,N] = x[M,K]·w[N,K]ᵀ with M tokens, N outputs and K
// inputs.
//
// A [Problem] is a shape, a number type and the weights' role, which is the kernel's operand slot for the weights. A
// [Matrix] holds an operand's bits, row-major, as in a safetensors file. [Multiply] computes the reference on the CPU.
// [Compare] compares a GPU's result (gemm/cuda) with the reference, within the [Tolerance] of the type's arithmetic.
//
// NaN and infinity in operands or results are errors ([ErrNotFinite]), because they would dominate the energy of a product.
package gemm
