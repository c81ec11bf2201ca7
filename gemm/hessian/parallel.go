package hessian

import "sync"

// each calls f for 0 to n-1, on so many goroutines.
func each(workers, n int, f func(i int)) {
	var g sync.WaitGroup
	for first := range min(workers, n) {
		g.Go(func() {
			for i := first; i < n; i += workers {
				f(i)
			}
		})
	}
	g.Wait()
}
