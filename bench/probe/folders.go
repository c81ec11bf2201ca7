package probe

import (
	"context"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
)

// CalibrateFolders fits the cost model to all series in folders, as [Calibrate] does, with its prior, progress and
// errors. The calibration names the command that measured the first series. A folder that does not exist or holds no
// series is an [fs.ErrNotExist].
func CalibrateFolders(ctx context.Context, folders []string, prior *cost.Calibration, progress func(done, total int)) (*cost.Calibration, error) {
	var all []*experiment.Series
	for _, folder := range folders {
		series, err := experiment.LoadFolder(folder)
		if err != nil {
			return nil, err
		}
		all = append(all, series...)
	}
	fitted, err := Calibrate(ctx, all, prior, progress)
	if err != nil {
		return nil, err
	}
	fitted.Command = all[0].Sessions[0].Command
	return fitted, nil
}
