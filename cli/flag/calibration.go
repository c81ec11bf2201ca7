package flag

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
)

// Flags that choose the calibration. verify has --calibration alone, because its flag --gpu has another meaning.
var (
	GPU         = &cli.StringFlag{Name: "gpu", Value: cost.UsualGPU, Usage: "predict for the GPU `NAME`", DefaultText: cost.UsualGPU}
	Calibration = &cli.StringFlag{Name: "calibration", Usage: "predict with the calibration in `FILE`"}
)

// ReadCalibration reads --gpu and --calibration. A command may lack either flag.
func ReadCalibration(c *cli.Context) (*cost.Calibration, error) {
	name, named := c.Value("gpu").(string)
	switch path := c.String("calibration"); {
	case !c.IsSet("calibration"):
		if !named {
			name = cost.UsualGPU
		}
		k, err := cost.FindCalibration(name)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--gpu: %w", err))
		}
		return k, nil
	case named && c.IsSet("gpu"):
		return nil, exit.Usagef("--gpu and --calibration exclude each other: give one of them")
	case path == "":
		return nil, exit.Usagef("--calibration: name a file that lowtoggle calibrate has written")
	default:
		k, err := cost.ReadCalibration(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--calibration: %s: there is no such file: name one that lowtoggle calibrate has written", path)
		}
		if err != nil && strings.EqualFold(filepath.Ext(path), ".csv") {
			return nil, exit.Usagef("--calibration %s: is a table of measurements: run lowtoggle calibrate NAME --from %s first, then give NAME.json", path, term.Words(path))
		}
		if err != nil {
			return nil, fmt.Errorf("--calibration: %w", err)
		}
		return k, nil
	}
}
