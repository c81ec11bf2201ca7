package search_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestFrozenChoices: choices under a budget of SNR do not change, of values and of codes, with and without tokens.
func TestFrozenChoices(t *testing.T) {
	list := []testplan.Frozen{
		{Model: "llama-tiny", Fields: testplan.Narrow, Passes: "sparsify=0.3,round", MinSNR: 12},
		{Model: "llama-tiny", Fields: testplan.Narrow, Passes: "round=6", MinSNR: 40},
		{Model: "fbgemm", Passes: "scales,round", MinSNR: 25},
		{Model: "gptq", Passes: "trellis,zeros", MinSNR: 15, Tokens: true},
		{Model: "compressed int8", Passes: "scales,trellis", MinSNR: 18},
		{Model: "compressed nvfp4", Passes: "round", MinSNR: 190},
		{Model: "awq", Passes: "round=1", MinSNR: 2, Tokens: true},
	}
	testplan.CheckFrozen(t, "testdata/frozen.txt", false, slices.Concat(list, testplan.FrozenTokens[:6], testplan.FrozenFormats[:4], testplan.FrozenReference)...)
}

// TestFrozenSearches: searches with finer lambdas, intervals and limits find the recorded trials and steps.
func TestFrozenSearches(t *testing.T) {
	var b strings.Builder
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testplan.Narrow), synth.Options{Seed: 8}))
	in := testmodel.HessiansOf(t, m)
	for _, c := range []struct {
		passes   string
		most     float64
		time     time.Duration
		whole    func(float64) float64
		interval func(float64) [2]float64
	}{
		{quick, 0.004, 0, nil, nil},
		{quick, 0.02, time.Hour, func(sum float64) float64 { return 2 * sum }, nil},
		{quick, 0.01, 0, func(sum float64) float64 { return 0.03 * math.Sqrt(sum) }, func(loss float64) [2]float64 {
			return [2]float64{loss - 0.1*math.Sqrt(loss), loss + 0.1*math.Sqrt(loss)}
		}},
		{"prune,trellis,compensate", 0.01, 0, nil, nil},
		{quick, 1e-12, 0, nil, nil},
	} {
		e := evaluatorOf(t, m, in)
		e.whole, e.interval = c.whole, c.interval
		e.sensitivity = func(layer string) float64 { return 0.02 * float64(1+len(layer)%7) }
		o := budgetOf(t, c.passes, c.most, in, e)
		o.Search.Time, o.Search.Record = c.time, search.Folder{t.TempDir(), "trace"}
		events := map[string]int{}
		o.Workers = 1
		o.Progress = func(e transform.Event) { events[e.Stage]++ }
		p := found(t, m, o)
		fmt.Fprintf(&b, "# %s within %g: %d single layers, %d models\n", c.passes, c.most, e.layers, e.trials)
		for _, s := range p.Search.Trials {
			fmt.Fprintf(&b, "%.6g %.6g %.6g %.6g %v\n", s.Energy, s.Predicted, s.Divergence, s.Loss, s.Kept)
		}
		for _, s := range p.Search.Frontier {
			fmt.Fprintf(&b, "%.6g %.6g\n", s.MaxLoss, s.Energy)
		}
		js, err := json.Marshal(p.Steps)
		testmodel.OK(t, err)
		fmt.Fprintf(&b, "%d steps %.8x, curves %d, sensitivities %d\n", len(p.Steps), sha256.Sum256(js), min(1, events["curves"]), events["sensitivities"])
	}
	goldenfile.Same(t, "testdata/searches.txt", []byte(b.String()))
}
