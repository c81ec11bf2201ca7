package model

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform"
)

// searchStages are the stages of a conversion with a search, in order. A plan's last stage is the one before "write".
// A search with a time limit repeats "trial", with "refine" between the trials.
var searchStages = []string{"statistics", "curves", "sensitivities", "trial", "predict", "write", "evaluate"}

// planStages is the number of searchStages of a plan.
var planStages = slices.Index(searchStages, "write")

// counted adds to each event of a search the number of the stage, and the number of all stages. Events of a command
// without a search get no numbers.
func counted(o transform.Options, stages int, event func(progress.Event)) func(progress.Event) {
	if o.Budget.MaxLoss == nil {
		return event
	}
	return func(e progress.Event) {
		name := e.Stage
		if name == "refine" {
			name = "trial"
		}
		if at := slices.Index(searchStages[:stages], name); at >= 0 {
			e.Number, e.Stages = at+1, stages
		}
		event(e)
	}
}
