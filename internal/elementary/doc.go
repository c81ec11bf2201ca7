// Package elementary has elementary functions whose results have the same bits on every processor. The last bits of package
// math's differ: some processors have assembly for a function, and others fuse sums with products. What decides the bytes of
// plans and of converted weights calls this package instead.
//
// Every product that is added is converted to float64, which keeps compilers from fusing the two. Relative errors are below
// 1e-14, but for [Pow] with a large result and for [Erfc] far from 0. Special cases are those of package math.
package elementary
