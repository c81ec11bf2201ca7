package flag

import (
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ReadWorkers returns the number of goroutines: the value of --workers, or GOMAXPROCS without the flag.
func ReadWorkers(c *cli.Context) (int, error) {
	if !c.IsSet("workers") {
		return runtime.GOMAXPROCS(0), nil
	}
	if n := c.Int("workers"); n >= 1 && n <= 4096 {
		return n, nil
	}
	return 0, exit.Usagef("--workers %d: give a number from 1 to 4096", c.Int("workers"))
}

// ReadFamily reads the family in the file of --arch; nil without --arch.
func ReadFamily(c *cli.Context) (*arch.Family, error) {
	data, err := FamilyFile(c)
	if data == nil || err != nil {
		return nil, err
	}
	f, err := arch.Parse(data)
	if err != nil {
		return nil, weights.FileErrorf(c.String("arch"), "%w", err)
	}
	return f, nil
}

// FamilyFile returns the content of the file of --arch; nil without --arch.
func FamilyFile(c *cli.Context) ([]byte, error) {
	if path := c.String("arch"); path != "" {
		return ReadFile(path, "--arch takes a family's JSON file (docs/own-family.md)")
	}
	return nil, nil
}

// ReadWorkload reads --workload and --role.
func ReadWorkload(c *cli.Context) (cost.Workload, cost.Role, error) {
	w, err := cost.ParseWorkload(c.String("workload"))
	if err != nil {
		return w, 0, exit.Usage(fmt.Errorf("--workload: %w", err))
	}
	r, err := cost.ParseRole(c.String("role"))
	if err != nil {
		return w, r, exit.Usage(fmt.Errorf("--role: %w", err))
	}
	return w, r, nil
}

// Options are the options of commands that read models.
type Options struct {
	Workload    cost.Workload
	Role        cost.Role
	Workers     int
	Family      *arch.Family
	Calibration *cost.Calibration
}

// Read reads the flags of all fields of Options. A wrong value is a usage error.
func Read(c *cli.Context) (o Options, err error) {
	if o.Workload, o.Role, err = ReadWorkload(c); err != nil {
		return o, err
	}
	if o.Workers, err = ReadWorkers(c); err != nil {
		return o, err
	}
	if o.Calibration, err = ReadCalibration(c); err != nil {
		return o, err
	}
	o.Family, err = ReadFamily(c)
	return o, err
}
