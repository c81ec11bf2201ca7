package profile

// move changes something by a step.
type move[T any] func(at *T, step float64)

// descend goes from a start by whichever move lowers a loss, for as long as one does: first by steps of 1 and −1,
// then of half of that, and so on while they are longer than finest. It says where it ends, and the loss there.
func descend[T any](at T, finest float64, loss func(T) float64, moves ...move[T]) (T, float64) {
	least := loss(at)
	for step := 1.0; step > finest; step /= 2 {
		for better := true; better; {
			better = false
			for _, m := range moves {
				for _, d := range []float64{step, -step} {
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
