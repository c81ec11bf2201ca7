package pass

import (
	"context"
)

// What tests look at besides the exported API.
var (
	RoundBlock = roundBlock
	CheckFolds = checkFolds
)

// RunBorder is the price of a border.
const RunBorder = runBorder

// SmallestTiles is smallestTiles; within is told the sum of squares and the number of values.
func SmallestTiles(ctx context.Context, l *Layer, tile [2]int, within func(sum, n float64) bool) (z Zeros, sum, n float64, err error) {
	z, taken, err := smallestTiles(ctx, l, tile, func(s square) bool { return within(s.sum, s.n) })
	return z, taken.sum, taken.n, err
}

// ChooseRuns of zeros in a row.
func ChooseRuns(row []float32, worth float64) []bool {
	var m runMask
	return m.choose(row, worth)
}

// Expected are the passes that a preview is of.
func Expected(choices []Choice) []Choice {
	return (&Model{Context: &Context{Choices: choices}}).expected()
}
