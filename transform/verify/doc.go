// Package verify looks at a converted model again, trusting nothing that made it: it reads the
// source's folder and the output's folder and says for every tensor what became of it.
//
// For each tensor it first looks for a relation in the data alone: row and column permutations,
// signs and powers of two ([find]); mantissa bits survive all of these, so rows and columns are
// recognised by the mantissas they hold, as vertices of a graph are by refining colours. Only
// where the data alone is not conclusive (values that also moved to a grid) the relation is the
// one the output's manifest claims, and measured to hold or not. Then every element is compared:
// it may be off by what the claimed steps can move it, and by no more. A tensor whose values stand
// within 20 dB of where they stood, and are not claimed to have moved, is not searched.
//
// It shares with the rest the readers of files, plans and the catalogue, and nothing of the code
// that transforms.
package verify
