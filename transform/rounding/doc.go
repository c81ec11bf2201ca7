// Package rounding chooses the stored values of a layer as a whole: it weighs the error that the
// layer's inputs make of them against the energy that their bits cost.
//
// # Setting
//
// W[N,K] are a layer's weights, row n an output and column k an input, and H[K,K] = XᵀX / tokens is
// the second moment of its inputs, symmetric and given in full; it may be singular. Storing Ŵ with
// E = W−Ŵ adds noise of power tr(E H Eᵀ) to outputs of power tr(W H Wᵀ) ([Measure]).
//
// # Feedback
//
// Columns are decided one after the other, in an order in which Hd = H + damp·mean(diag H)·I is
// U D Uᵀ, U unit upper triangular ([NewFactor]). Then
//
//	tr(E Hd Eᵀ) = Σ_k D_k ‖t_k − ŵ_k‖²  with the target  t_k = w_k + Σ_{j<k} U_jk (w_j − ŵ_j),
//
// so a column decided later makes good what earlier ones did, and what is left to each [Chooser] is one
// column with one weight D_k ([Round]). This is LDLQ (Chee et al., QuIP, 2023), which decides as OPTQ
// does (Frantar et al., 2022), without an inverse. The order is by descending H_kk, OPTQ's "activation
// order".
//
// # Choosing
//
// [Grid], [Bits], [Sparse] and [Stored] take the nearest value of a set. [Trellis] minimises error and
// energy together, which is rate–distortion optimisation with a Lagrangian multiplier: for each value
// alone, or along the rows by Viterbi's algorithm where steps from row to row cost energy, too.
// [Prune] says which whole columns are best zeroed, by a pivoted Cholesky factorisation of Hd, as
// optimal brain surgery would (Hassibi and Stork, 1993).
//
// # Contract
//
// Matrices are row-major and belong to the caller; nothing given is changed. Values are float32 that
// the format can represent, so [weights.Format.Encode] loses nothing. Weights that are not finite stay
// and take part in no sum. Results have the same bits for any number of workers. All functions return
// ctx's error well under a second after ctx ends. Shapes that do not fit panic, as in package sgemm.
package rounding
