package pass

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// ScaleBits is the data of a step of [Scales].
type ScaleBits struct {
	// Bits is the largest number of mantissa bits of a scale. For FP8 codes, the root mean square of the codes under
	// a scale is about 2^Bits times the smallest code.
	Bits int `json:"bits"`
}

var errNoCodes = errors.New("the weight is not stored as codes")

// Scales chooses new scales for quantised weights, then the codes.
var Scales = &Pass{
	Name: "scales", Class: Lossy, Default: true,
	Usage: "scales[=BITS]",
	Doc: "Chooses new scales for quantised weights, and then new codes. INT4, INT8 and NVFP4 with group scales: each scale " +
		"gets at most BITS mantissa bits, 0 to 7 (0: powers of two). Kernels of weight-only quantisation multiply by such " +
		"a scale before the tensor cores. FP8: scales are multiplied by powers of two until codes at σ are about 2^BITS " +
		"times the smallest code, with BITS from 0 to 16. Small codes of E4M3 are fixed-point numbers and toggle fewer " +
		"bits. Without BITS, the accuracy budget determines BITS. Without a budget, BITS is 2. For FP8, BITS is 5 if 5 is " +
		"predicted to save energy. The pass works with round, grid, trellis and compensate. MXFP4 scales do not change, " +
		"because they are powers of two. Scales that are applied after the product do not change either.",
	Args: func(args []string) error {
		if bits, err := strconv.Atoi(args[0]); err != nil || bits < 0 || bits > mostPlace {
			return fmt.Errorf("%q is not a number of bits from 0 to %d", args[0], mostPlace)
		}
		if len(args) > 1 {
			return errors.New("too many arguments")
		}
		return nil
	},
	Codes:      scalesFit,
	CodesOnly:  true,
	Candidates: scaleCandidates,
	Tuned:      tunedScales,
	Compile: func(s *plan.Step, c *program.Context) (o program.Operation, err error) {
		d, err := plan.Data[ScaleBits](s)
		switch {
		case err != nil:
			return o, err
		case !c.Program.Coded():
			return o, errNoCodes
		}
		q := c.Program.Source.Quantised
		if reason := scalesFit(q, nil); reason != "" {
			return o, errors.New(reason)
		}
		if d.Bits < 0 || d.Bits > mostScaleBits(q) {
			return o, fmt.Errorf("%d bits are not within 0 and %d", d.Bits, mostScaleBits(q))
		}
		return program.Operation{Codes: &program.Recoding{Rescale: true, Bits: d.Bits}}, nil
	},
	Describe: func(s *plan.Step) string {
		d, _ := plan.Data[ScaleBits](s)
		if d.Bits == 1 {
			return "scales of 1 bit"
		}
		return fmt.Sprintf("scales of %d bits", d.Bits)
	},
}

const mostPlace = 16 // mostPlace is in binary places above the smallest FP8 code

func mostScaleBits(q *quant.Quantised) int {
	if isFP8(q) {
		return mostPlace
	}
	return 7
}

func scalesFit(q *quant.Quantised, args []string) string {
	scales, found := q.Scales()
	switch {
	case found && q.Experts() > 1 && scales.Len() == 1:
		return "its experts share one scale"
	case isFP8(q):
		return ""
	case q.Format.Codes == "mxfp4" || scales.DType == weights.U8 || scales.DType == weights.F8E8M0:
		return "its scales are powers of two already"
	case q.Format.Per == "tensor" || q.Format.Per == "channel":
		return "kernels apply its scales after the product, where they cost no energy in the tensor cores"
	}
	if len(args) > 0 {
		if bits, _ := strconv.Atoi(args[0]); bits > mostScaleBits(q) {
			return fmt.Sprintf("its scales take 0 to %d mantissa bits", mostScaleBits(q))
		}
	}
	return ""
}

func scaleCandidates(_ context.Context, l *Layer, args []string) (all []any, err error) {
	q := l.Codes()
	switch {
	case q == nil || scalesFit(q, args) != "":
		return nil, nil
	case len(args) > 0:
		bits, _ := strconv.Atoi(args[0])
		return []any{ScaleBits{bits}}, nil
	case l.Budget.MinSNR == nil && l.Budget.MaxLoss == nil && isFP8(q):
		return []any{ScaleBits{5}}, nil
	case l.Budget.MinSNR == nil && l.Budget.MaxLoss == nil:
		return []any{ScaleBits{2}}, nil
	}
	return scaleBitsOf(q), nil
}

// scaleBitsOf lists the numbers of bits to try, from most to least loss.
func scaleBitsOf(q *quant.Quantised) []any {
	if isFP8(q) {
		return []any{ScaleBits{1}, ScaleBits{2}, ScaleBits{3}, ScaleBits{4}, ScaleBits{5}}
	}
	return []any{ScaleBits{0}, ScaleBits{1}, ScaleBits{2}}
}

// tunedScales measures each number of bits alone, without feedback. It takes the one with the least error +
// lambda·energy.
func tunedScales(ctx context.Context, l *Layer, _ float64) (func(lambda float64) any, error) {
	q := l.Codes()
	if q == nil || scalesFit(q, nil) != "" {
		return func(float64) any { return nil }, nil
	}
	type option struct {
		data          any
		error, energy float64
	}
	measure := func(data any) (o option, err error) {
		p := l.base
		if data != nil {
			if p, err = l.Program(ctx, &plan.Step{Pass: "scales", Tensor: l.Weight.Name, Data: data}); err != nil {
				return o, err
			}
		}
		s := l.Sample(p)
		e, err := s.Energy(ctx, p)
		if err != nil {
			return o, err
		}
		loss, err := s.Loss(ctx, p)
		o = option{data, 0, e.Relative}
		if loss.Signal > 0 {
			o.error = loss.Noise / loss.Signal
		}
		return o, err
	}
	var all []option
	for _, data := range append([]any{nil}, scaleBitsOf(q)...) {
		o, err := measure(data)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return func(lambda float64) (best any) {
		least := math.Inf(1)
		for _, o := range all {
			if v := o.error + float64(lambda*o.energy); v < least {
				best, least = o.data, v
			}
		}
		return best
	}, nil
}
