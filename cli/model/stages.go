package model

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform"
)

// searchStages are the stages of a conversion with a search, in order. A plan ends before "write". A search with a time limit
// repeats "trial" with "refine" between.
var searchStages = []string{"statistics", "curves", "sensitivities", "trial", "predict", "write", "evaluate"}

// planStages is the number of searchStages that make the plan.
var planStages = slices.Index(searchStages, "write")

// counted adds the number of the stage to events of a search, of which stages is the last one's; other work has no numbers.
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
