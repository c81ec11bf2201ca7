// Package transform converts models so that a GPU's wires toggle less when it multiplies by their weights.
//
// [Convert] does everything in one call: it plans, writes the converted folder and, with tokens, compares the losses.
// [Plan] only makes a plan and writes nothing. [Apply] carries a plan out. [Verify] checks a result without using the
// code of the conversion.
//
// # Plan and apply
//
// A plan is data (package plan). [Plan] reads a model and makes all decisions. [Apply] reads the model's tensors one
// after another, carries out the plan's steps and writes a new folder. The same plan and model give the same bytes on
// any machine and with any number of workers.
//
// # Passes
//
// [Passes] lists the module's passes in the order in which they act on a weight, each with its check in package
// verify. [Table.Validate] checks a table against the constraints between passes. A pass is a value ([pass.Pass]). A
// caller's own pass is appended to a clone of the table (see the example). The class of a pass is exact (function and
// mantissas are kept), compensated (the function is kept in real arithmetic, stored values round) or lossy (spends
// the budget).
//
// Exact passes act on an index that several weights share, such as the neurons of a layer, the heads or the residual
// stream (see package arch). The labels of an index are the positions along this dimension. The effect of an exact
// pass on one index is a [program.Symmetry] in the source's labels, so the steps may have any order in a plan. The
// other passes act on one weight, after the symmetries of its axes.
//
// # Budget
//
// Outputs N, inputs K: y[M,N] = x[M,K]·w[N,K]ᵀ. A budget of output SNR bounds ‖w‖²/‖w′−w‖² of each layer in decibels.
// This is the SNR of the layer's output for independent inputs of unit variance. A budget of loss bounds the KL
// divergence of the whole model in nats per token. It needs [Tokens]; package search distributes it over the layers
// for the largest saving.
//
// # Adapters
//
// Exact passes also change a LoRA adapter in the base model's folder, and the adapter is written like a shard. The
// other passes act on the base model alone, and shift leaves out weights that an adapter changes. If an adapter cannot
// be converted, exact and compensated passes return an error, and lossy passes copy the adapter.
//
// # Values
//
// NaN and infinity are moved but not changed: their bits stay, and no flip, scale or fold that would change them is
// planned.
package transform
