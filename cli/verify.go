package cli

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
)

var verifyCommand = &cli.Command{
	Name:      "verify",
	Usage:     "look at a converted model again: what was kept, what was spent",
	ArgsUsage: "MODEL OUT",
	Description: `Reads the source MODEL and what convert made of it, and trusts nothing else.

   identical    the same bytes                  compensated  shifted, or part of a fold
   exact        reordered, flipped, scaled      lossy        rounded or zeroed
   untouched    the same bytes, and no part of the model's family

Exit status 3: the output does not keep what its manifest claims.`,
	Flags: flags([]cli.Flag{tensorsFlag, workloadFlag, roleFlag, archFlag}, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL", "OUT")
		if err != nil {
			return err
		}
		o, err := readOptions(c)
		if err != nil {
			return err
		}
		src, err := openModel(args[0])
		if err != nil {
			return err
		}
		defer src.Close()
		out, err := openModel(args[1])
		if err != nil {
			return err
		}
		defer out.Close()
		r, err := verifyModels(c, src, out, o)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			err = printJSON(c.App.Writer, r)
		} else {
			r.print(c.App.Writer, c.Bool("tensors"))
			r.hint(c.App.Writer, src, args, o.family != nil)
		}
		if err == nil && !r.OK {
			err = errShort
		}
		return err
	},
}

// verifyJSON is what verify --json prints.
type verifyJSON struct {
	*verify.Report
	Energy *energyJSON `json:"energy,omitempty"`

	workload cost.Workload
	role     cost.Role
}

type energyJSON struct {
	Predicted *ratio `json:"predicted,omitempty"`
}

// verifyModels compares and predicts, with progress.
func verifyModels(c *cli.Context, src, out *weights.Model, o readings) (*verifyJSON, error) {
	event, end := newProgress(c)
	defer end()
	rep, err := verify.Models(c.Context, src, out, verify.Options{Family: o.family, Workers: o.workers, Progress: event})
	if err != nil {
		return nil, err
	}
	r := &verifyJSON{Report: rep, workload: o.workload, role: o.role}
	layout, _, _ := transform.Resolve(src, o.family)
	var all, done int64
	for _, t := range rep.Tensors {
		if t.Linear {
			a, _ := src.Tensor(t.Name)
			all += a.Size()
		}
	}
	var total ratio
	for _, t := range rep.Tensors {
		if !t.Linear {
			continue
		}
		a, _ := src.Tensor(t.Name)
		b, _ := out.Tensor(t.Name)
		outAxis := 0
		if layout != nil && layout.Claims[t.Name] != nil {
			outAxis = layout.Claims[t.Name].OutAxis
		}
		before, errA := o.energy(c.Context, a, outAxis)
		after, errB := o.energy(c.Context, b, outAxis)
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		total.add(a.Len(), before, after)
		done += a.Size()
		event(transform.Event{Stage: "energy", Done: done, Total: all})
	}
	if k := total.known(); k != nil {
		r.Energy = &energyJSON{k}
	}
	return r, nil
}
