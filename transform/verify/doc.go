// Package verify looks at a converted model again, trusting nothing that made it: it reads the
// source's folder and the output's folder and says for every tensor what became of it.
//
// For each tensor it first looks for a relation in the data alone: row and column permutations,
// signs and powers of two ([find]); mantissa bits survive all of these, so rows and columns are
// recognised by the mantissas they hold, as vertices of a graph are by refining colours. Only
// where the data alone is not conclusive (values that also moved to a grid) the relation is the
// one the output's manifest claims, and measured to hold or not. Then every element is compared.
//
// It shares with the rest the readers of files, plans and the catalogue, and nothing of the code
// that transforms.
package verify
