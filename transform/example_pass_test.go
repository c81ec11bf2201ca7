package transform_test

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// clearBits is the data of a step of the pass below.
type clearBits struct {
	Times int `json:"times"`
}

// clearLowest is a lossy pass outside the module. It clears the lowest set bit of every value.
var clearLowest = &pass.Pass{
	Name: "clearlowest", Class: pass.Lossy, Usage: "clearlowest[=TIMES]",
	Doc: "Clears the lowest mantissa bit that is set in every value, TIMES times (1 unless given).",
	Args: func(args []string) error {
		if len(args) != 1 || args[0] != "1" && args[0] != "2" {
			return fmt.Errorf("%q is neither 1 nor 2", args)
		}
		return nil
	},
	Candidates: func(_ context.Context, _ *pass.Layer, args []string) ([]any, error) {
		if len(args) > 0 && args[0] == "2" {
			return []any{clearBits{2}}, nil
		}
		return []any{clearBits{1}}, nil
	},
	Compile: func(s *plan.Step, c *program.Context) (program.Operation, error) {
		data, err := plan.Data[clearBits](s)
		mantissa := uint32(1)<<c.Program.Format.MantBits - 1
		return program.Operation{Apply: func(b program.Block) {
			for i := range b.Rows * b.Cols {
				v := b.Format.Elem(b.Data, i)
				for range data.Times {
					if low := v & mantissa; low != 0 && b.Format.Finite(v) {
						v &^= 1 << bits.TrailingZeros32(low)
					}
				}
				b.Format.SetElem(b.Data, i, v)
			}
		}}, err
	},
	Describe: func(*plan.Step) string { return "clear the lowest bit" },
}

// clearLowestCheck is written from the pass's documentation alone: a value moves by less than the largest power of
// two below it.
var clearLowestCheck = &verify.Check{Claim: func(s *plan.Step) (*verify.Claim, error) {
	_, err := plan.Data[struct {
		Times int `json:"times"`
	}](s)
	return &verify.Claim{Within: func(f weights.Format, _ int, v, _ float64) float64 {
		return verify.Spacing(f, v) * float64(int(1)<<f.MantBits)
	}}, err
}}

// A program can define a pass outside the module: a value with a name, candidates and an operation, and a check of
// its results. The pass is appended to a clone of the table, and used like all others.
func Example_newPass() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	check(err)
	defer os.RemoveAll(dir)
	config, err := synth.Config("llama-tiny")
	check(err)
	check(synth.Folder(ctx, config, filepath.Join(dir, "model"), synth.Options{Seed: 1}))
	model, err := weights.Open(filepath.Join(dir, "model"))
	check(err)
	defer model.Close()

	table := append(slices.Clone(transform.Passes), transform.Row{Pass: clearLowest, Check: clearLowestCheck, Reason: "after all others"})
	passes, err := table.Parse("clearlowest=2")
	check(err)
	calibration, err := cost.FindCalibration("h200")
	check(err)
	options := transform.ConvertOptions{Options: transform.Options{Passes: passes, Table: table, Cost: calibration}}
	conversion, err := transform.Convert(ctx, model, filepath.Join(dir, "out"), options)
	check(err)
	step := conversion.Plan.Steps[0]
	fmt.Println(len(conversion.Plan.Steps), "steps, the first on", step.Tensor+":", table.Describe(step))

	converted, err := weights.Open(filepath.Join(dir, "out"))
	check(err)
	defer converted.Close()
	report, err := transform.Verify(ctx, model, converted, transform.VerifyOptions{Table: table})
	check(err)
	fmt.Println("verified:", report.OK)
	// Output:
	// 15 steps, the first on model.layers.0.self_attn.q_proj.weight: clear the lowest bit
	// verified: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
