// Package elementary has elementary functions whose results have the same bits on every processor. Package math's
// last bits differ: some processors have assembly for a function, and others fuse sums with products. Code that
// determines the bytes of plans and of converted weights must call this package.
//
// Every product that is added is converted to float64, which prevents fusing the product with the sum. Relative
// errors are below 1e-14, except for [Pow] with a large result and for [Erfc] far from 0. Special cases are those of
// package math.
package elementary
