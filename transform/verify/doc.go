// Package verify checks a converted model independently of the code that converted it. It reads the source's folder and
// the output's folder, and reports for every tensor how it changed.
//
// # Found in the data
//
// For a tensor that changed, verify searches for a relation to the source: row and column permutations, signs and powers
// of two. None of them changes mantissa bits. So rows and columns are recognised by their mantissas, with colour
// refinement as for graph isomorphism. If the values are within 20 dB of the source's at the same positions, and the
// manifest claims no relation, there is no search. The claimed relation counts if the data are not conclusive (values
// coincide, or are also on a grid), or if lossy steps are claimed. It is then compared with the data.
//
// SNR, zeros, zero low bits and values that are not finite are counted in the data. Headers, metadata, shards, the order
// of tensors and all other files are compared with the source's. Digests are compared with those in the manifest.
//
// # Recomputed from the claims
//
// The manifest holds the steps. Verify computes what they make of the source, and compares every element with it.
//
//   - A symmetry must be one that the family allows.
//   - A fold must be complete: the norm is filled, and every layer that reads the norm is rewritten, with one rounding.
//   - The zeros of sparsify follow from its thresholds and the values before it. All of these must be zero. Any other zero
//     must come from a later step.
//   - round and grid may move a value by their rounding error, and must leave multiples of their step.
//   - The extra tensors of an epilogue must hold the claimed shift.
//
// Verify shares the readers of files, plans and the catalogue with the rest of the module. It shares no code with the
// passes: all that is recomputed is implemented a second time here.
package verify
