// Package rounding chooses the stored values of a whole layer jointly. It minimises the error of the layer's outputs
// on calibration inputs together with the energy of the values' bits.
//
// # Setting
//
// W[N,K] are a layer's weights: row n is an output, column k an input. H[K,K] = XᵀX/tokens is the Hessian, the second
// moment of the layer's inputs. H is symmetric, has all its elements, and may be singular. Storing Ŵ with the error E
// = W−Ŵ adds noise of power tr(E H Eᵀ) to outputs of power tr(W H Wᵀ) ([Measure]).
//
// # Feedback
//
// Columns are rounded one after the other, in an order in which the damped Hessian
// Hd = H + damp·mean(diag H)·I is U D Uᵀ with U unit upper triangular ([NewFactor]). Then
//
//	tr(E Hd Eᵀ) = Σ_k D_k ‖t_k − ŵ_k‖²  with the target  t_k = w_k + Σ_{j<k} U_jk (w_j − ŵ_j).
//
// Columns that are not yet rounded absorb the errors of rounded columns. A [Chooser] gets one column with one weight
// D_k at a time ([Round]). This is LDLQ (Chee et al., QuIP, 2023). It makes the same choices as OPTQ (GPTQ; Frantar
// et al., 2022) without an inverse. The order is by descending H_kk, OPTQ's "activation order".
//
// # Choosing
//
// [Grid], [Bits], [Sparse] and [Stored] choose the nearest value of a set. [Trellis] minimises error and energy
// together. It is rate–distortion-optimised rounding with a Lagrange multiplier, and not trellis-coded quantisation.
// It chooses each value by itself. If steps from row to row also cost energy, it chooses a path along the rows by
// Viterbi's algorithm. [Prune] orders whole columns for zeroing by a pivoted Cholesky factorisation of Hd, as in
// optimal brain surgery (Hassibi and Stork, 1993).
//
// # Contract
//
// Matrices are row-major and belong to the caller; arguments are not changed. Values are float32 numbers of the
// format, so [weights.Format.Encode] is exact. Weights that are not finite keep their value and are in no sum.
// Results have the same bits for any number of workers. After ctx ends, all functions return ctx's error well within
// a second. Shapes that do not fit panic, as in package sgemm.
package rounding
