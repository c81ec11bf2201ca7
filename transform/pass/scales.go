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
	Doc: "Chooses new scales for quantised weights, and then new codes. In INT4, INT8 and NVFP4 with group scales, each " +
		"scale gets at most BITS mantissa bits, 0 to 7 (0: powers of two). Kernels of weight-only quantisation " +
		"multiply by these scales before the tensor cores. In FP8, each scale is multiplied by a power of two. The " +
		"root mean square of the codes then is about 2^BITS times the smallest code; BITS is 0 to 16. The smallest " +
		"codes of E4M3 are subnormal: they have few significant bits and toggle fewer wires than larger codes. Without " +
		"BITS, the accuracy budget determines BITS. Without a budget, BITS is 2, or 5 for FP8 if 5 is predicted to " +
		"save energy. The pass can be combined with round, grid, trellis and compensate. MXFP4 scales do not change, " +
		"because they are powers of two. Other scales per channel or per tensor do not change: kernels apply these " +
		"scales after the product, where scales cost no energy in the tensor cores.",
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
			return o, fmt.Errorf("BITS is %d: give 0 to %d", d.Bits, mostScaleBits(q))
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
		return "the experts share one scale"
	case isFP8(q):
		return ""
	case q.Format.Codes == "mxfp4" || scales.DType == weights.U8 || scales.DType == weights.F8E8M0:
		return "the scales are already powers of two"
	case q.Format.Per == "tensor" || q.Format.Per == "channel":
		return "kernels apply the scales after the product, where scales cost no energy in the tensor cores"
	}
	if len(args) > 0 {
		if bits, _ := strconv.Atoi(args[0]); bits > mostScaleBits(q) {
			return fmt.Sprintf("BITS can be 0 to %d", mostScaleBits(q))
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
