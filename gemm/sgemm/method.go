package sgemm

// tile computes a tile of c, at most tileRows by tileCols, over k ≥ 1 steps: from 0, or from its old values if
// add is set.
type tile func(c Matrix, a *rowPanel, b *colPanel, k int, add bool)

// method is a way to compute tiles. All give the same bits.
type method struct {
	name string
	tile tile
}

// methods of this machine, fastest first. The last one is the loop in Go.
var methods = append(kernels(), method{"plain", tilePlain})
