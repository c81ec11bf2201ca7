package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
)

var inspectCommand = &cli.Command{
	Name:        "inspect",
	Usage:       "show a model's bit toggles and zeros, and the largest possible saving",
	ArgsUsage:   "MODEL",
	Description: "MODEL is a folder of safetensors files, or a single file. Nothing is written.",
	Flags:       flags([]cli.Flag{tensorsFlag, workloadFlag, roleFlag, archFlag, gpuFlag, calibrationFlag}, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL")
		if err != nil {
			return err
		}
		o, err := readOptions(c)
		if err != nil {
			return err
		}
		m, err := openModel(args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		event, end := term.Progress(c)
		found, err := inspect.Model(c.Context, m, inspect.Options{Calibration: o.calibration, Role: o.role, Workload: o.workload,
			Family: o.family, Workers: o.workers, Progress: event})
		end()
		if err != nil {
			return err
		}
		r := inspectJSON{args[0], found, o.workload, o.role}
		if c.Bool("json") {
			return term.JSON(c.App.Writer, r)
		}
		r.print(c.App.Writer, c.Bool("tensors"))
		return nil
	},
}

// inspectJSON is what inspect --json prints.
type inspectJSON struct {
	Model string `json:"model"`
	*inspect.Report
	workload cost.Workload
	role     cost.Role
}
