package profile

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// smoothness is how strongly a curve is drawn smooth.
type smoothness struct {
	growth float64 // see roughness
	order  float64 // of magnitude, of the penalty's weight against the data's
}

// folds are how many parts the runs are divided into for cross-validation.
const folds = 5

// crossValidation judges curves by how well they predict runs that they were not made from.
type crossValidation struct {
	cells
	breaks []float64
	rows   []row
	fold   []int    // of each run
	parts  []system // without one fold each
}

func newCrossValidation(ctx context.Context, c cells, breaks []float64, rows []row, runs int, seed uint64) (*crossValidation, error) {
	v := &crossValidation{cells: c, breaks: breaks, rows: rows, fold: make([]int, runs)}
	n := min(folds, runs)
	for i, run := range rand.New(rand.NewPCG(seed, uint64(runs))).Perm(runs) {
		v.fold[run] = i % n
	}
	for f := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v.parts = append(v.parts, assemble(c, rows, func(run int) float64 {
			if v.fold[run] == f {
				return 0
			}
			return 1
		}))
	}
	return v, nil
}

// best finds the smoothness of least loss: for each growth the penalty's weight, from where it is assumed to be,
// by steps of two orders down to half of one. The loss changes little about its least, and where that lies
// is chance; so the smoothest is taken that is not worse by more than a standard error, over runs, and an earlier
// growth unless it is.
func (v *crossValidation) best(ctx context.Context, growths []float64, about float64) (best smoothness, err error) {
	const lowest, highest, finest = -6, 8, 0.5
	var least []float64
	scale := v.parts[0].scale()
	for _, growth := range growths {
		bend := roughness(v.cells, v.breaks, growth)
		seen := map[float64][]float64{}
		losses := func(log float64) []float64 {
			l, ok := seen[log]
			if !ok {
				l = v.losses(bend, scale*math.Pow(10, log))
				seen[log] = l
			}
			return l
		}
		at := about
		for step := 2.0; step >= finest; step /= 2 {
			for lower := true; lower; {
				if err := ctx.Err(); err != nil {
					return best, err
				}
				lower = false
				for _, log := range []float64{at - step, at + step} {
					if log >= lowest && log <= highest && floats.Sum(losses(log)) < floats.Sum(losses(at)) {
						at, lower = log, true
					}
				}
			}
		}
		if least == nil || worse(least, losses(at)) {
			least, best = losses(at), smoothness{growth, at}
			for log := at + finest; log <= highest && !worse(losses(log), losses(at)); log += finest {
				best.order = log
			}
		}
	}
	return best, nil
}

// worse says whether losses exceed others by more than a standard error of the difference.
func worse(losses, others []float64) bool {
	off := slices.Clone(losses)
	floats.Sub(off, others)
	mean, dev := stat.MeanStdDev(off, nil)
	return !(mean <= dev/math.Sqrt(float64(len(off))))
}

// losses of the readings that were left out, by run.
func (v *crossValidation) losses(bend *normal, lambda float64) []float64 {
	losses := make([]float64, len(v.fold))
	for f, part := range v.parts {
		p, ok := part.solve(bend, lambda)
		if !ok {
			losses[0] = math.Inf(1)
			return losses
		}
		for _, r := range v.rows {
			if v.fold[r.run] == f {
				losses[r.run] += huber((r.watts - r.mean(p)) / r.sigma)
			}
		}
	}
	return losses
}
