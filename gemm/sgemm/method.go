package sgemm

// tile computes a tile of c, rows by cols elements from c[0] on, at most tileRows by tileCols, over k ≥ 1 steps:
// from 0, or from its old values if add is set. Rows of c are stride elements apart. c is no Matrix: copying one
// for every tile would wait until the stores of the tile before are done.
type tile func(c []float32, stride, rows, cols int, a *rowPanel, b *colPanel, k int, add bool)

// method is a way to compute tiles. All give the same bits.
type method struct {
	name string
	tile tile
}

// methods of this machine, fastest first. The last one is the loop in Go.
var methods = append(kernels(), method{"plain", tilePlain})
