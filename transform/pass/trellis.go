package pass

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Price is the data of a step of [Trellis].
type Price struct {
	// Lambda is the relative error of the layer's output that is worth a relative energy of 1.
	Lambda float64 `json:"lambda"`
	// Rates are the energies of values in this layer, from the cost model that the plan was made with.
	Rates rounding.Rates `json:"rates"`
}

// Trellis is rate–distortion-optimised rounding. It is not trellis-coded quantisation: the name refers to the trellis
// of Viterbi's algorithm, along rows whose neighbours cost energy.
var Trellis = &Pass{
	Name: "trellis", Class: Lossy, UsesHessians: true, Joint: true, ByRow: true, Chooser: true,
	Usage: "trellis[=LAMBDA]",
	Doc: "Rounds with rate–distortion optimisation (not trellis-coded quantisation). Every value becomes the nearby " +
		"value with the least weighted sum of error and energy. Values with few significant bits, above all powers of " +
		"two, toggle fewer wires in multipliers and memory than other values. In the streaming role, a value that " +
		"equals the value in the row before also costs little energy. Dynamic programming along the rows finds the " +
		"best values. The cost model gives the energy of each value in this layer, workload and role, and the plan " +
		"stores these energies. LAMBDA weights energy, as a share of the layer's energy, against error, as a share of " +
		"the layer's output power. 1e-3 is gentle, 1e-1 leaves mostly powers of two. With --tokens, errors are " +
		"weighted by the layers' real inputs. In each run measured in prefill (llama-17m), trellis with compensate " +
		"saves the most energy of all passes within each budget of loss (docs/frontier.md).",
	Args: func(args []string) error {
		if l, err := strconv.ParseFloat(args[0], 64); err != nil || !(l > 0 && l <= 1000) {
			return fmt.Errorf("%q is not a number above 0 and up to 1000", args[0])
		}
		if len(args) > 1 {
			return errors.New("too many arguments")
		}
		return nil
	},
	Codes: anyCodes,
	Candidates: func(ctx context.Context, l *Layer, args []string) (all []any, err error) {
		if len(args) == 0 && l.Budget.MinSNR == nil {
			return nil, nil // the search for a budget of loss chooses lambda
		}
		rates, err := l.Rates(ctx)
		if err != nil {
			return nil, err
		}
		tried := Lambdas()
		if len(args) > 0 {
			lambda, _ := strconv.ParseFloat(args[0], 64)
			tried = []float64{lambda}
		}
		for _, lambda := range tried {
			all = append(all, Price{lambda, rates})
		}
		return all, nil
	},
	Tuned: func(ctx context.Context, l *Layer, _ float64) (func(float64) any, error) {
		rates, err := l.Rates(ctx)
		return func(lambda float64) any { return Price{lambda, rates} }, err
	},
	Preview: previewTrellis,
	Compile: func(s *plan.Step, c *program.Context) (o program.Operation, err error) {
		t, err := plan.Data[Price](s)
		if err != nil {
			return o, err
		}
		if !(t.Lambda >= 0 && t.Lambda <= 1000) {
			return o, fmt.Errorf("lambda is %g, not from 0 to 1000", t.Lambda)
		}
		f := c.Program.Format
		o.Joint = true
		if c.Program.Coded() {
			f, _ = c.Program.OperandDType().Format()
			o.Codes = &program.Recoding{Lambda: t.Lambda, Rates: t.Rates}
			return o, t.Rates.Validate(f)
		}
		o.Chooser = func(_ int, scale float64) (rounding.Chooser, error) {
			return rounding.Trellis{Format: f, Rates: t.Rates, Lambda: t.Lambda, Scale: scale}, nil
		}
		return o, t.Rates.Validate(f)
	},
	Describe: func(*plan.Step) string { return "trellis" },
}

// previewTrellis gives all errors equal weight and chooses every value alone.
func previewTrellis(ctx context.Context, l *Layer, data any) (o program.Operation, err error) {
	price := data.(Price)
	rms, err := l.OutputRMS(ctx)
	if err != nil {
		return o, err
	}
	var mean float64 // mean square
	for _, v := range rms {
		mean += v * v / float64(len(rms))
	}
	if mean == 0 {
		return o, nil
	}
	alone := price.Rates
	alone.Differ, alone.Sign, alone.Run = 0, 0, 0
	chooser := rounding.Trellis{Format: l.Format, Rates: alone, Lambda: price.Lambda, Scale: 1 / mean}
	rows, cols := l.Rows(), l.Cols()
	if _, err := chooser.Begin(rows, cols); err != nil {
		return o, err
	}
	o.Apply = func(b program.Block) {
		choose, _ := chooser.Begin(rows, cols)
		v := make([]float32, b.Rows*b.Cols)
		b.Format.Decode(v, b.Data)
		own := map[int]uint32{} // keep values that are not finite
		for i, x := range v {
			if x-x != 0 {
				own[i], v[i] = b.Format.Elem(b.Data, i), 0
			}
		}
		choose(rounding.Column{D: 1, T: v})
		b.Format.Encode(b.Data, v)
		for i, x := range own {
			b.Format.SetElem(b.Data, i, x)
		}
	}
	return o, nil
}
