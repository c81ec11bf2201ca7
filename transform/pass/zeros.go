package pass

import (
	"context"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// ZeroSigns is the data of a step of [PositiveZero].
type ZeroSigns struct{}

// PositiveZero replaces every −0 by +0.
var PositiveZero = &Pass{
	Name: "zeros", Class: Lossy,
	Usage: "zeros",
	Doc: "Replaces the code of −0 by the code of +0 in quantised weights of FP8 and FP4. No value changes. Passes that choose " +
		"codes anew write +0 anyway.",
	CodesOnly: true,
	Codes: func(q *quant.Quantised, _ []string) string {
		switch d := q.Tensors[0].DType; {
		case d == weights.F8E4M3FNUZ || d == weights.F8E5M2FNUZ:
			return "the code of −0 is NaN in " + d.String()
		case isFP8(q) || isFP4(q):
			return ""
		}
		return "integers have no −0"
	},
	Candidates: func(_ context.Context, l *Layer, _ []string) ([]any, error) {
		if l.Codes() == nil {
			return nil, nil
		}
		return []any{ZeroSigns{}}, nil
	},
	Compile: func(s *plan.Step, c *program.Context) (o program.Operation, err error) {
		if _, err := plan.Data[ZeroSigns](s); err != nil {
			return o, err
		}
		if !c.Program.Coded() {
			return o, errNoCodes
		}
		return program.Operation{Codes: &program.Recoding{PositiveZero: true}}, nil
	},
	Describe: func(*plan.Step) string { return "−0 to +0" },
}
