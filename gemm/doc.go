// Package gemm multiplies by linear layers: y[M,N] = x[M,K]·w[N,K]ᵀ with M tokens, N outputs and K
// inputs.
//
// A [Problem] says the shape, the number type and which operand the weights are; a [Matrix] holds
// an operand's bits, row-major, as a safetensors file does. A [Backend] multiplies: [CPU], the
// reference, which serves to check numbers and never to speak of power, and the GPU of gemm/cuda.
// [Check] holds a backend's result against the reference, within the [Tolerance] that the type's
// arithmetic allows.
//
// Infinities and NaNs in operands or results are errors ([ErrNotFinite]): the energy of a product
// that drowned in them says nothing about the weights.
package gemm
