package cli

import (
	"fmt"
	"os"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

func workers(c *cli.Context) (int, error) {
	if !c.IsSet("workers") {
		return runtime.GOMAXPROCS(0), nil
	}
	if n := c.Int("workers"); n >= 1 && n <= 4096 {
		return n, nil
	}
	return 0, usagef("--workers %d: give a number from 1 to 4096", c.Int("workers"))
}

// family reads the file that --arch names; nil where it names none.
func family(c *cli.Context) (*arch.Family, error) {
	path := c.String("arch")
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := arch.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// workload reads --workload and --role.
func workload(c *cli.Context) (cost.Workload, cost.Role, error) {
	w, err := cost.ParseWorkload(c.String("workload"))
	if err != nil {
		return w, 0, usage(fmt.Errorf("--workload: %w", err))
	}
	r, err := cost.ParseRole(c.String("role"))
	if err != nil {
		return w, r, usage(fmt.Errorf("--role: %w", err))
	}
	return w, r, nil
}

// readings are what a command that looks at models is asked for.
type readings struct {
	workload    cost.Workload
	role        cost.Role
	workers     int
	family      *arch.Family
	calibration *cost.Calibration
}

func readOptions(c *cli.Context) (o readings, err error) {
	if o.workload, o.role, err = workload(c); err != nil {
		return o, err
	}
	if o.workers, err = workers(c); err != nil {
		return o, err
	}
	if o.calibration, err = calibration(c); err != nil {
		return o, err
	}
	o.family, err = family(c)
	return o, err
}
