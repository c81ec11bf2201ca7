package stitch

import (
	"context"
	"math"
)

// move changes one or more parameters by a step.
type move[T any] func(at *T, step float64)

// patternSearch minimises a loss from a start. It takes any move that lowers the loss, by steps of 1 and −1, until none
// does; then it halves the step, as long as that is longer than finest. It returns the parameters and their loss. When
// the context ends, so does the search.
func patternSearch[T any](ctx context.Context, at T, finest float64, loss func(T) float64, moves ...move[T]) (T, float64) {
	const most = 1000 // rounds of one step; no measured value is farther from its start
	least := loss(at)
	for step := 1.0; step > finest; step /= 2 {
		better := true
		for round := 0; better && round < most; round++ {
			better = false
			for _, m := range moves {
				for _, d := range []float64{step, -step} {
					if ctx.Err() != nil {
						return at, least
					}
					try := at
					m(&try, d)
					if l := loss(try); l < least {
						at, least, better = try, l, true
					}
				}
			}
		}
	}
	return at, least
}

// wattScale returns the size of a jump of power in kilowatts, at least 1: the factor for search steps in watts.
func wattScale(jump float64) float64 { return max(1, math.Abs(jump)/1000) }
