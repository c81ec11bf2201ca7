package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
)

// Flags that choose the calibration. verify has only the second, because its --gpu measures.
var (
	gpuFlag         = &cli.StringFlag{Name: "gpu", Value: cost.UsualGPU, Usage: "predict for the GPU `NAME`", DefaultText: cost.UsualGPU}
	calibrationFlag = &cli.StringFlag{Name: "calibration", Usage: "predict with the calibration in `FILE`"}
)

// calibration reads --gpu and --calibration. A command may lack the first or both.
func calibration(c *cli.Context) (*cost.Calibration, error) {
	name, named := c.Value("gpu").(string)
	switch path := c.String("calibration"); {
	case !c.IsSet("calibration"):
		if !named {
			name = cost.UsualGPU
		}
		k, err := cost.FindCalibration(name)
		if err != nil {
			return nil, usage(fmt.Errorf("--gpu: %w", err))
		}
		return k, nil
	case named && c.IsSet("gpu"):
		return nil, usagef("--gpu and --calibration exclude each other")
	case path == "":
		return nil, usagef("--calibration: name a file that lowtoggle calibrate has written")
	default:
		k, err := cost.ReadCalibration(path)
		if err != nil {
			return nil, fmt.Errorf("--calibration: %w", err)
		}
		return k, nil
	}
}
