// Package transform converts models so that a GPU's wires toggle less when it multiplies by their weights.
//
// [Convert] is one call: it plans, writes the converted folder and, where there are tokens, compares the losses.
// [Plan] decides and writes nothing; [Apply] carries a plan out; [Verify] checks a result without using the code
// that made it.
//
// # Plan and apply
//
// A plan is data (package plan). [Plan] reads a model and decides everything; Apply streams the model through the
// plan into a new folder, and decides nothing. The same plan over the same model gives the same bytes on any
// machine with any number of workers.
//
// # Passes
//
// [Passes] lists the module's passes in the order in which they act on a weight, each with its check in package
// verify. [Table.Validate] checks a table against the constraints between passes. A pass is a value ([pass.Pass]); a caller's own
// pass is appended to a clone of the table (see the example). Its class is exact (function and mantissas are kept), compensated
// (the function is kept in real arithmetic, stored values round) or lossy (it spends the budget).
//
// Exact passes act on an index that several weights share (the neurons of a layer, the heads, the residual stream;
// see package arch), never on one weight alone. Their effect on one index is a [program.Symmetry] in the source's labels, so
// their steps may have any order in a plan. The other passes act on one weight, after the symmetries of its axes.
//
// # Budget
//
// y[M,N] = x[M,K]·w[N,K]ᵀ: outputs N, inputs K. A budget of output SNR bounds, layer by layer, ‖w‖²/‖w′−w‖² in
// decibels: the SNR of the layer's output for independent inputs of unit variance. A budget of loss bounds, for the
// whole model, the KL divergence in nats per token; it needs [Tokens], and package search spends it where it saves
// most energy.
//
// # Adapters
//
// A LoRA adapter beside the base takes part in the symmetries. It is written like a shard. The other passes act on
// the base alone, and shift leaves out what an adapter changes. For an adapter that cannot be converted, exact and compensated
// passes return an error; all others copy it.
//
// # Values
//
// NaN and infinity are moved, never computed with: their bits stay, and no flip, scale or fold is planned that
// would touch them.
package transform
