package model

import (
	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/transform"
)

var Inspect = &cli.Command{
	Name:      "inspect",
	Usage:     "show a model's bit toggles and zeros, and the largest predicted saving",
	ArgsUsage: "MODEL",
	Description: `MODEL is a folder of safetensors files, or a single file. MODEL is not changed.

   lowtoggle inspect MODEL
   lowtoggle inspect MODEL --workload decode --tensors
   lowtoggle inspect MODEL -o report.html         a report with distributions of the values`,
	Flags: flag.Join([]cli.Flag{outfile.ReportFlag, flag.Tensors, flag.Workload, flag.Role, flag.Arch, flag.GPU, flag.Calibration}, flag.Common),
	Action: func(c *cli.Context) error {
		args, err := flag.Arguments(c, "MODEL")
		if err != nil {
			return err
		}
		o, err := flag.Read(c)
		if err != nil {
			return err
		}
		path := c.String("output")
		if err := outfile.CheckOutput(path, args, outfile.HTML); err != nil {
			return err
		}
		m, err := flag.OpenModel(c.Context, args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		event, end := term.Progress(c)
		found, err := inspect.Model(c.Context, m, inspect.Options{Calibration: o.Calibration, Role: o.Role, Workload: o.Workload,
			Family: o.Family, Workers: o.Workers, Progress: event})
		end()
		if err != nil {
			return err
		}
		hint := suggestion(c, m, args[0], transform.Options{Cost: o.Calibration, Workload: o.Workload, Role: o.Role, Family: o.Family, Workers: o.Workers}, true)
		r := inspectJSON{args[0], found, hint, o.Workload, o.Role}
		if c.Bool("json") {
			err = term.JSON(c.App.Writer, r)
		} else {
			r.print(c.App.Writer, c.Bool("tensors"))
		}
		if err != nil || path == "" {
			return err
		}
		all, err := inspect.Sample(c.Context, m, nil, o.Family, o.Workers)
		if err != nil {
			return err
		}
		return r.page(c, all).Write(c, path)
	},
}

// inspectJSON is the output of inspect --json.
type inspectJSON struct {
	Model string `json:"model"`
	*inspect.Report
	Hint     string `json:"hint,omitempty"`
	workload cost.Workload
	role     cost.Role
}
