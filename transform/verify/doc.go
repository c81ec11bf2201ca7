// Package verify looks at a converted model again, trusting nothing that made it: it reads the
// source's folder and the output's folder and says for every tensor what became of it.
//
// # From the data alone
//
// For a tensor that changed it looks for a relation: row and column permutations, signs and powers
// of two ([find]). Mantissa bits survive all of these, so rows and columns are recognised by the
// mantissas they hold, as vertices of a graph are by refining colours. A tensor whose values stand
// within 20 dB of where they stood, and are not claimed to have moved, is not searched. Where the
// data are not conclusive (values that also moved to a grid, or coincide), or lossy steps are
// claimed, the claimed relation counts, and is measured to hold or not.
//
// Signal-to-noise ratios, zeros, low bits and values that are not finite are counted in the data.
// Headers, metadata, the order of tensors, their shards and all other files are compared with the
// source's, and digests with those that the manifest records.
//
// # Recomputed from the claims
//
// The manifest says which steps were taken; what they make of the source is worked out here, and
// every element is held against it. A symmetry must be one that the family allows. A fold must be
// whole: the norm filled, and every layer that reads it rewritten, to one rounding. Which values
// sparsify zeroes follows from its thresholds and the values before it: all of these must be zero,
// and no others, except where a later step rounds them there. A grid, or low bits that are zeroed,
// may move a value by their step's error and no more, and must leave multiples of their step. The
// extra tensors of an epilogue must hold the claimed shift.
//
// It shares with the rest the readers of files, plans and the catalogue, and nothing of the code
// that transforms: what is recomputed is written a second time.
package verify
