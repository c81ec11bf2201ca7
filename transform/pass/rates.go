package pass

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Rates asks the cost model for energies of this layer: rounded to each number of significant bits, with a quarter of
// its outputs zeroed, and with equal rows.
func (l *Layer) Rates(ctx context.Context) (r rounding.Rates, err error) {
	if l.rates != nil {
		return *l.rates, nil
	}
	sample := l.Sample()
	energy := func(change program.Op) (float64, error) {
		e, err := sample.energyOf(ctx, l.base, change)
		return e.Relative, err
	}
	full := l.Format.MantBits + 1
	r.Significant = make([]float64, full+1)
	for bits := range full {
		zeroed := min(full-1-bits, l.Format.Zeroable())
		if r.Significant[bits+1], err = energy(func(b program.Block) { roundBlock(b.Format, b.Data, Bits{Zeroed: zeroed}) }); err != nil {
			return r, err
		}
	}
	// More bits cost at least as much energy; a sample may contradict this.
	for b := full - 1; b >= 1; b-- {
		r.Significant[b] = math.Min(r.Significant[b], r.Significant[b+1])
	}
	// A zero among other values saves no more than a power of two (measured).
	r.Significant[0] = r.Significant[1]
	const share = 4
	lines, err := energy(func(b program.Block) {
		for i := range b.Rows {
			row := b.Data[i*len(b.Data)/b.Rows : (i+1)*len(b.Data)/b.Rows]
			clear(row[len(row)-len(row)/share:])
		}
	})
	// A quarter of the lines may save more than a quarter of the energy. No line saves less than all its values
	// alone.
	r.Line = math.Max(0, math.Min(r.Significant[1], r.Significant[full]-float64(share*(r.Significant[full]-lines))))
	if err != nil {
		return r, err
	}
	if err := l.stepRates(ctx, &r, energy); err != nil {
		return r, err
	}
	l.rates = &r
	return r, nil
}

// stepRates sets the energy of a step between unequal values in neighbouring rows: the saving of equal rows in runs,
// and the share of equal signs in this saving.
func (l *Layer) stepRates(ctx context.Context, r *rounding.Rates, energy func(program.Op) (float64, error)) error {
	if l.base.OutAxis == 1 || l.Codes() != nil {
		return nil // the file's rows are inputs there, and codes are chosen one by one
	}
	w := cost.Weights{DType: l.Weight.DType, OutAxis: l.base.OutAxis, Rows: l.base.Rows, Cols: l.base.Cols}
	lags, err := l.Cost.Lags(ctx, w, 0, l.Role, l.Workload)
	if err != nil || len(lags) == 0 {
		return err
	}
	run := len(lags[0].Weights)
	alike, err := energy(func(b program.Block) {
		size := len(b.Data) / b.Rows
		for i := range b.Rows {
			if first := i - (b.First+i)%run; first >= 0 {
				copy(b.Data[i*size:(i+1)*size], b.Data[first*size:])
			}
		}
	})
	if err != nil {
		return err
	}
	signless, err := energy(func(b program.Block) {
		for i := range b.Rows * b.Cols {
			b.Format.SetElem(b.Data, i, b.Format.Elem(b.Data, i)&^b.Format.SignMask())
		}
	})
	full := len(r.Significant) - 1
	saved := r.Significant[full] - alike
	const least = 0.01 // threshold for the noise of a sample in a role without runs
	if err != nil || saved < least {
		return err
	}
	// In a run, all steps but one are within the run. Half of all signs differ.
	steps := saved * float64(run) / float64(run-1)
	r.Sign = math.Max(0, math.Min(2*(r.Significant[full]-signless), steps))
	r.Differ = math.Max(0, steps-float64(r.Sign/2))
	r.Run = run
	// In a lane, a run is followed by the lane's next run, after the runs of the other lanes.
	for _, lag := range lags {
		if lanes := (lag.Distance-1)/run + 1; lag.Weights[run-1] > 0 && lanes != 2 {
			r.Lanes = lanes
		}
	}
	return nil
}
