package stitch

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// smoothness is the shape and weight of the penalty.
type smoothness struct {
	growth float64 // see roughness
	order  float64 // log10 of the penalty's weight relative to the weight of the data
}

// folds is the number of folds of the cross-validation over runs.
const folds = 5

// crossValidation evaluates a smoothness by how well traces predict the runs of a left-out fold.
type crossValidation struct {
	cells
	breaks []float64
	rows   []row
	fold   []int    // fold of each run
	parts  []system // normal equations without one fold each
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

// best returns the smoothness with the least loss. For each growth it searches the penalty's weight from start, first
// in steps of two orders of magnitude and finally in steps of half an order. The loss is flat around its minimum, so
// the exact minimum is a matter of chance. best therefore takes the smoothest trace whose loss is within one standard
// error over runs (the one-standard-error rule). It prefers an earlier growth unless a later one is better by more than
// a standard error.
func (v *crossValidation) best(ctx context.Context, growths []float64, start float64) (best smoothness, err error) {
	const lowest, highest, finest = -6, 8, 0.5
	var least []float64
	scale := v.parts[0].scale()
	for _, growth := range growths {
		penalty := roughness(v.cells, v.breaks, growth)
		seen := map[float64][]float64{}
		losses := func(log float64) []float64 {
			l, ok := seen[log]
			if !ok {
				l = v.losses(penalty, scale*math.Pow(10, log))
				seen[log] = l
			}
			return l
		}
		at := start
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

// worse reports whether losses exceed others by more than one standard error of the difference.
func worse(losses, others []float64) bool {
	off := slices.Clone(losses)
	floats.Sub(off, others)
	mean, dev := stat.MeanStdDev(off, nil)
	return !(mean <= dev/math.Sqrt(float64(len(off))))
}

// losses returns the loss of the left-out readings, by run.
func (v *crossValidation) losses(penalty *banded, lambda float64) []float64 {
	losses := make([]float64, len(v.fold))
	for f, part := range v.parts {
		p, ok := part.solve(penalty, lambda)
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

// roughness returns the matrix of the penalty on a trace's second differences. No difference reaches across a break.
// After a break the change of power slows down: the second derivative falls as the jump divided by the square of the
// time since the break. The penalty therefore grows with a power of that time; the exponent is growth.
func roughness(c cells, breaks []float64, growth float64) *banded {
	const (
		young = 0.01 // in seconds after a break; the penalty starts to grow here
		old   = 0.5  // in seconds after a break; the penalty stops growing here

		rounding = 1e-6
	)
	m := newBanded(c.n, min(2, c.n-1))
	add := func(weight float64, first int, d ...float64) {
		for j := range d {
			for k := j; k < len(d); k++ {
				m.row(first + j)[k-j] += weight * d[j] * d[k]
			}
		}
	}
	for i := 1; i+1 < c.n; i++ {
		since, inside, edge := old, -1.0, false
		for _, b := range breaks {
			switch x := b/c.step - float64(i); {
			case x > rounding && x < 1-rounding:
				inside = x
			case x > rounding-1 && x < 2-rounding:
				edge = true
			case x < 0:
				since = min(since, (0.5-x)*c.step)
			}
		}
		switch {
		case inside >= 0:
			// If power jumps within the cell, the cell contains a mixture of both powers.
			add(1, i-1, -inside, 1, inside-1)
		case !edge:
			add(math.Pow(1+since/young, growth), i-1, 1, -2, 1)
		}
	}
	return m
}
