// Package measure compares what products cost by different weights: it puts every candidate's
// products on a GPU (gemm/cuda), checks that the numbers are right, and meters them against each
// other (gemm/power).
//
// A [Machine] is a GPU with its sensors, or a simulated one that has neither and serves to try
// everything else: its name says so, and its figures mean nothing.
//
// Energy and time are those of one pass through a candidate's products: of one GEMM, or of all
// layers of a model. All candidates multiply the same shapes, so their kernels are the same; what
// differs is the bits.
package measure
