// Package program carries out the steps of a plan on one weight at a time: it loads rows of the source through
// the symmetries of the exact passes, and runs the operations of the other passes on them. It knows no pass by
// name: what a step means comes from the [Rule] of its pass, and what it does is an [Operation].
//
// # Joint choice
//
// Most operations rewrite a few rows in place. Some choose the values of a whole layer together, because errors
// of one column are handed on to others by the layer's Hessian. Such a program is prepared before its rows are
// read ([Program.Prepare]) and released after.
//
// # Values
//
// NaN and infinity are moved, never computed with: their bits stay as they are.
package program
