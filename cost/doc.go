// Package cost says what a tensor's bits make a GPU's wires do, and what that costs.
//
// Throughout, y[M,N] = x[M,K]·w[N,K]ᵀ: M tokens, N outputs, K inputs, and w is the tensor looked
// at. In storage order a weight matrix has rows (all dimensions but the last) and columns (the
// last); Linear layers store one output per row, Conv1D layers store the transpose.
//
// # Activity
//
// [Measure] counts bits exactly, over every element of a tensor: bits that differ between
// neighbouring rows in the same column, and between neighbours in memory, each per bit field
// (sign, exponent, mantissa); bits set; zeros, their runs and their borders; NaN, infinities and
// subnormal numbers. [Counter] counts the same for a tensor that comes as a stream of rows.
// Counts are integers, so they are the same for any number of workers and any way of cutting the
// stream.
//
// The six formats of weights.Format are counted. An I8 is two's complement: its top bit counts as
// the sign, the other seven as mantissa, and it has no exponent.
//
// # Prediction
//
// [Rough] turns an activity into energy relative to that of random data. As the name says, its
// coefficients are rough: fitted to a few dozen readings of one GPU, and every estimate carries
// that label.
//
// # Memory and concurrency
//
// Tensor data is only read and never kept, but for a Counter's copy of the last row. Functions
// and values are safe for concurrent use; a Counter is not.
package cost
