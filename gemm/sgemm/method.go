package sgemm

// tile computes a tile of c, at most tileRows by tileCols, over k ≥ 1 steps: from 0, or where add is
// set from its old values.
type tile func(c Matrix, a *rowPanel, b *colPanel, k int, add bool)

// method is a way to compute tiles. All give the same bits.
type method struct {
	name string
	tile tile
}

// methods are those that this machine has, fastest first; the plain twin is the last.
var methods = append(kernels(), method{"plain", tilePlain})
