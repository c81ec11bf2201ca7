package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Observer receives the inputs of linear layers.
type Observer interface {
	// Input is called with each input x[tokens, inputs], batch by batch in the order of the sequences. All layers that
	// share an input share one call; names are the names of their weights. The input of a routed expert contains the
	// tokens that are routed to it. If a batch has no such tokens, Input is not called. x is read-only and valid during
	// the call. An error ends the pass.
	Input(names []string, x sgemm.Matrix) error
}

// pass is the state of a computation on a batch.
type pass struct {
	context.Context
	workers   int
	products  Products
	observer  Observer  // may be nil
	sequences [][]int32 // sequences of the batch
}

// observe passes the input of some layers to the observer.
func (p *pass) observe(x sgemm.Matrix, layers ...decoder.Linear) error {
	if p.observer == nil {
		return nil
	}
	return p.observer.Input(namesOf(layers), x)
}

func namesOf(layers []decoder.Linear) []string {
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.Weight
	}
	return names
}

// rowRun is the number of rows that a worker processes at a time.
const rowRun = 32

// rows calls f for the rows 0 to n-1.
func (p *pass) rows(n int, f func(row int)) error {
	return parallel.Run(p, (n+rowRun-1)/rowRun, p.workers, func(_ context.Context, run int) error {
		for i := run * rowRun; i < min(n, (run+1)*rowRun); i++ {
			f(i)
		}
		return nil
	})
}
