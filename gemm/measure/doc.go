// Package measure compares the energy of products by different weights. It uploads every candidate's
// products to a GPU (gemm/cuda), checks the results, and measures the candidates against each other
// (gemm/power).
//
// [Models] compares a model with its converted copy in one call: all linear layers, in every phase of a
// workload, and each kind of layer. [Compare] and [CompareOn] compare any products, [RunSeries] measures
// many operands of one product.
//
// A [Machine] is a GPU with its sensors. [Simulated] machines have neither: they exist for tests and trials,
// and their figures mean nothing.
//
// Energy and time are those of one pass through a candidate's products: of one GEMM, or of all layers of a
// model. All candidates multiply the same shapes, by the same kernels and in the same memory. Only the bits differ. Candidates that
// need other kernels are an exception, and a warning says so.
package measure
