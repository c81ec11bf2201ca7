package model

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestStages: a conversion with a search has exactly the stages in searchStages, in this order, and events number
// them.
func TestStages(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	file, err := tokens.Open(randomTokens(t, 12))
	testmodel.OK(t, err)
	calibration, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	passes, err := transform.ParsePasses(quickly)
	testmodel.OK(t, err)
	o := transform.Options{Passes: passes, Cost: calibration, Workload: cost.DefaultWorkload, Budget: pass.Budget{MaxLoss: nats(0.05)}}
	o.Tokens, err = transform.NewTokens(m, file, nil, nil, 0)
	testmodel.OK(t, err)
	o.Tokens.Dir = t.TempDir()
	var stages []string
	o.Progress = counted(o, len(searchStages), func(e progress.Event) {
		if len(stages) == 0 || stages[len(stages)-1] != e.Stage {
			stages = append(stages, e.Stage)
		}
		if e.Stages != len(searchStages) || searchStages[e.Number-1] != e.Stage {
			t.Errorf("%+v", e)
		}
	})
	_, err = transform.Convert(t.Context(), m, t.TempDir()+"/out", transform.ConvertOptions{Options: o})
	testmodel.OK(t, err)
	if !slices.Equal(stages, searchStages) {
		t.Errorf("the stages are %q, want %q", stages, searchStages)
	}
}
