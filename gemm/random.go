package gemm

import (
	"math/rand/v2"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Normal returns rows × cols draws of a normal distribution, rounded to d (for I8, mean and sigma
// count integer steps). Every row has a generator of its own, so the result depends on the
// arguments alone. It panics where d has no format.
func Normal(d weights.DType, rows, cols int, mean, sigma float64, seed uint64) Matrix {
	m := NewMatrix(d, rows, cols)
	f := m.format()
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for r := range rows {
		g.Go(func() error {
			rng := rand.New(rand.NewPCG(seed, uint64(r)))
			for c := range cols {
				f.SetElem(m.Data, r*cols+c, f.FromValue(float32(mean+sigma*rng.NormFloat64())))
			}
			return nil
		})
	}
	_ = g.Wait() // none of them fails
	return m
}
