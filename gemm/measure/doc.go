// Package measure compares the energy of the same products with different weights. It uploads every candidate's
// products to a GPU (gemm/cuda), checks the results, and compares the candidates' energy and time (gemm/power).
//
// [Models] compares a model with its converted copy in one call: all linear layers together and each kind of layer, in
// every phase of a workload. [Compare] and [CompareOn] compare any products. [RunSeries] measures many pairs of
// operands of one product.
//
// A [Machine] is a GPU with its sensors. A [Simulated] machine has no GPU and no sensors. It is for tests and trials,
// and its figures say nothing about a real GPU.
//
// Energy and time are per pass through a candidate's products, for example one GEMM or all layers of a model. All
// candidates have the same shapes, kernels and memory, and differ only in their bits. A candidate that needs different
// kernels gets a warning.
package measure
