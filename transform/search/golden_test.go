package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// TestGoldenNumbers: hulls of points, shares of budgets and aims are the recorded ones, also of equal and extreme numbers.
func TestGoldenNumbers(t *testing.T) {
	var b strings.Builder
	rng := rand.New(rand.NewPCG(6, 6))
	for range 12 {
		c := curve{{Energy: 1}}
		for range rng.IntN(9) {
			c = append(c, point{Error: float64(rng.IntN(5)) / 4, Energy: float64(rng.IntN(9)) / 8})
		}
		h := c.hull()
		fmt.Fprintf(&b, "hull of %d:", len(c))
		for _, p := range h {
			fmt.Fprintf(&b, " (%g, %g)", p.Error, p.Energy)
		}
		fmt.Fprint(&b, "; at")
		for _, lambda := range []float64{0, 0.25, 0.5, 1, 2, 1e9} {
			fmt.Fprintf(&b, " %d", h.at(lambda))
		}
		fmt.Fprint(&b, "; find")
		for _, e := range []float64{-1, 0, 0.25, 0.3, 0.5, 1, 2} {
			fmt.Fprintf(&b, " %d", h.find(point{Error: e}))
		}
		fmt.Fprintln(&b)
	}
	var trials []plan.Trial
	for i, d := range []float64{0, 0.001, 0.004, 0.005, 0.0051, 0.02, 0.5} {
		for _, loss := range []float64{-0.01, 0, 0.004, 0.009} {
			for _, half := range []float64{math.NaN(), 0, 0.001, 0.02} {
				trial := plan.Trial{Predicted: 0.001 * float64(i+1), Divergence: d, Loss: loss}
				if half >= 0 {
					trial.Interval = &[2]float64{loss - half, loss + half}
				}
				fmt.Fprintf(&b, "divergence %g, loss %g ± %g: keeps %v, spends %.6g\n", d, loss, half, keeps(&trial, 0.01), spent(&trial, 0.01))
				if loss == 0.004 && half == 0.001 {
					trials = append(trials, trial)
				}
			}
		}
	}
	for from := range trials {
		for to := from; to <= len(trials); to++ {
			s := &search{}
			s.found.Trials = trials[from:to]
			fmt.Fprintf(&b, "aim after trials %d to %d: %.6g %.6g\n", from, to, s.aim(0.01, 1), s.aim(0.04, 0.975))
		}
	}
	for _, v := range []float64{0, -1, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
		fmt.Fprintf(&b, "%g: number %v, present %v\n", v, isNumber(v), finiteOrNil(v) != nil)
	}
	goldenfile.Same(t, "testdata/numbers.txt", []byte(b.String()))
}
