// Package transform holds the passes over a model's weights, the plan that says what they do to
// which tensor, and the writer that carries a plan out.
//
// # The way of a weight
//
// [Make] reads a model and decides everything: it returns a [Plan], which is data. [Apply] streams
// the model through the plan into a new folder. Nothing is decided there, so the same plan over
// the same model gives the same bytes on any machine with any number of workers.
//
// # Passes
//
// A [Pass] is a value; [Passes] lists them in the order in which they act on a tensor, and
// [Validate] holds that table against the constraints between them. A pass is [Exact] (the
// function and every bit of every value's mantissa are kept), [Compensated] (the function is kept
// in real arithmetic, the stored values round) or [Lossy] (it spends the budget).
//
// Exact passes act on an index that several tensors share (the neurons of a layer, the heads, the
// residual stream; see package arch) and never on one tensor alone. What they do to one index is
// a [Symmetry], always in the source's labels, so their steps may stand in a plan in any order.
// The other passes act on one tensor, after the symmetries of its axes.
//
// # Shapes and budget
//
// y[M,N] = x[M,K]·w[N,K]ᵀ: outputs N, inputs K. A tensor stored the other way round (GPT-2's
// Conv1D) is told apart by arch.Claim.OutAxis. The budget is the signal-to-noise ratio of a linear
// layer's output for independent inputs of unit variance, ‖w‖²/‖w′−w‖², in decibels.
//
// # Adapters
//
// A LoRA adapter beside the base takes part in the symmetries: its matrices' axes are those of the
// layers that they are added to (arch.Layout.Adapt). It is written like a shard. The other passes act
// on the base alone, and shift leaves alone what an adapter changes. An adapter that is not understood
// is an error for exact and compensated passes, and copied by all others.
//
// # Values
//
// NaN and infinity are moved, never computed with: their bits stay as they are, and no flip,
// scale or fold is planned that would touch them.
package transform
