package profile

import (
	"context"
	"math"
)

// move changes something by a step.
type move[T any] func(at *T, step float64)

// descend goes from a start by whichever move lowers a loss, for as long as one does: first by steps of 1 and −1,
// then of half of that, and so on while they are longer than finest. It says where it ends, and the loss there. Where
// the context ends it ends too, wherever it is.
func descend[T any](ctx context.Context, at T, finest float64, loss func(T) float64, moves ...move[T]) (T, float64) {
	const most = 1000 // rounds of one step: what is farther away is nothing that was measured
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

// kilowatts that a jump of power is, at least one: steps in watts are as long as suits such a jump.
func kilowatts(jump float64) float64 { return max(1, math.Abs(jump)/1000) }
