package stitch

import (
	"context"
	"math"
)

// move changes one or more parameters by a step.
type move[T any] func(at *T, step float64)

// patternSearch minimises a loss from a start. It accepts any move, by a step of 1 or −1, that lowers the loss. When no
// move lowers the loss, it halves the step, down to finest. It returns the parameters and their loss. It stops early
// when the context ends.
func patternSearch[T any](ctx context.Context, at T, finest float64, loss func(T) float64, moves ...move[T]) (T, float64) {
	const most = 1000 // rounds with one step size; no plausible result is farther from the start
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

// wattScale returns the magnitude of a power jump in kilowatts, at least 1. Search steps in watts are multiplied by it.
func wattScale(jump float64) float64 { return max(1, math.Abs(jump)/1000) }
