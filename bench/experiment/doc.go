// Package experiment measures series of points: products of one shape and type whose operands are
// made by patterns (cost/pattern), each against a baseline, on one card.
//
// A [Setup] is what all points of a series share, a [Point] is a pair of patterns and its place on
// the axis of an experiment. [Run] measures them and keeps a [Series] for every setup: a JSON file
// in a folder, named after the setup, that is written anew after every reading. So a run may be
// broken off at any time, and the same run begun again measures what is missing. Runs on several
// cards may share a folder as long as each has setups of its own.
//
// Operands are x[M,K] and w[N,K], drawn from the patterns with the seeds 2·Seed and 2·Seed+1.
// Where a result could overflow they are scaled down by a power of two, and the file says so.
//
// [Series.Results] puts all readings of a point together, and [Series.Check] holds the series
// against its null points: copies of the baseline that are measured among the others, and that
// must come out as 1.
package experiment
