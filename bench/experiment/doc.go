// Package experiment measures series of points on one card. A point is a product x[M,K]·w[N,K]ᵀ whose operands are drawn from
// patterns (cost/pattern). All products of a series have one shape and type. Their energies are compared with that of a
// baseline product.
//
// All points of a series share a [Setup]. A [Point] is a pair of patterns and its place on the axis of an
// experiment. [Run] measures the points of [Job] values. It keeps a [Series] for every setup: a JSON file named
// after the setup, which it rewrites after every reading. A run may be interrupted at any time; the same run
// started again measures what is missing. Runs on several cards may share a folder if each has its own setups.
//
// [Setup.Seeds] returns the seeds with which the operands are drawn. Operands whose product could overflow are divided by a
// power of two, and the file records the division.
//
// [Series.Results] combines all readings of a point. [Series.Check] checks the null points, which are copies
// of the baseline measured among the other points. Their relative energy must be 1.
package experiment
