// Package verify checks a converted model independently of the code that converted it. It reads the source's folder and
// the output's folder, and reports for every tensor how it changed.
//
// # Found in the data
//
// For a tensor that changed, verify searches for a relation to the source: row and column permutations, signs and
// powers of two. These changes keep mantissa bits, so rows and columns are recognised by their mantissas, with colour
// refinement as for graph isomorphism. If the values are within 20 dB of the source's at the same positions, and the
// manifest claims no relation, there is no search. The claimed relation is used if the data are not conclusive
// (values coincide, or are also on a grid), or if lossy steps are claimed. The data are then compared with the source
// under this relation.
//
// SNR, zeros, zero low bits and values that are not finite are counted in the data. Headers, metadata, shards, the
// order of tensors and all other files are compared with the source's. Digests are compared with the manifest's.
//
// # Recomputed from the claims
//
// The manifest holds the steps. Verify applies the steps to the source, and compares every element with the result.
//
//   - A symmetry must be one that the family allows.
//   - A fold must be complete: the norm is filled, and every layer that reads the norm is rewritten, with one rounding.
//   - The thresholds of sparsify, and the values before this step, determine the zeros. All of these values must be zero.
//     Any other zero must come from a later step.
//   - round and grid may move a value by their rounding error, and must leave multiples of their step.
//   - The extra tensors of an epilogue must hold the claimed shift.
//
// Verify uses the module's readers of files, plans and the catalogue. It uses no code of the passes: everything that
// is recomputed is implemented a second time here.
package verify
