package model

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// TestInterruptedPlanningSaysSo: interrupted planning without a search says that nothing was kept.
func TestInterruptedPlanningSaysSo(t *testing.T) {
	model, out := random(t, "llama-tiny", func(string, []byte) {}), filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"plan", "-o", out, model}, {"convert", model, out}} {
		_, err := run(ctx, args...)
		if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), ": nothing was written; run the same command again to start over") {
			t.Errorf("%s: %v", args[0], err)
		}
	}
}

// TestNoSaving: a plan without a saving gets a note. The note names exact passes only if they are the reason.
func TestNoSaving(t *testing.T) {
	exact, lossy := &plan.Step{Pass: "reorder"}, &plan.Step{Pass: "round"}
	for _, c := range []struct {
		relative float64
		load     cost.Workload
		steps    []*plan.Step
		want     string
	}{
		{0.9994, cost.Workload{Prefill: 1}, []*plan.Step{lossy}, ""},
		{0.9996, cost.Workload{Prefill: 1}, []*plan.Step{exact, lossy}, "this conversion is predicted to save no energy: keep the source, or try another recipe or other passes"},
		{1, cost.Workload{Prefill: 1}, nil, "this conversion is predicted to save no energy: keep the source, or try another recipe or other passes"},
		{1, cost.Workload{Prefill: 1}, []*plan.Step{exact},
			"this conversion is predicted to save no energy, as is usual for exact passes in prefill: keep the source, or try another recipe or other passes"},
		{1.001, cost.Workload{Decode: 1}, []*plan.Step{exact}, "this conversion is predicted to cost energy: keep the source, or try another recipe or other passes"},
	} {
		p := &plan.Plan{Steps: c.steps, Request: plan.Request{Workload: c.load}}
		if got := noSaving(p, &predict.Ratio{Relative: c.relative}); got != c.want {
			t.Errorf("%v in %s: %q, not %q", c.relative, c.load, got, c.want)
		}
	}
	for _, c := range []struct{ format, passes, want string }{
		{"int4=64", "zeros", ": add the pass scales, which chooses scales that save energy"},
		{"int4", "scales=2", ""},
		{"fp8-block", "", ": add the pass scales, which chooses scales that save energy"},
		{"mxfp4", "", ""},
		{"int8", "", ": try other passes for codes, such as --passes round=1, which save more energy and lose more accuracy"},
	} {
		p := &plan.Plan{Request: plan.Request{Workload: cost.Workload{Prefill: 1}, Format: c.format, Passes: []string{c.passes}}}
		want := "this conversion is predicted to save no energy, relative to " + transform.FormatBaseline + c.want
		if got := noSaving(p, &predict.Ratio{Relative: 1}); got != want {
			t.Errorf("--format %s --passes %q: %q, not %q", c.format, c.passes, got, want)
		}
	}
	if got := noSaving(&plan.Plan{}, nil); got != "" {
		t.Errorf("without a prediction: %q", got)
	}
}

// TestUnusedPasses: a search's report names the requested lossy passes that no layer has.
func TestUnusedPasses(t *testing.T) {
	p := &plan.Plan{Request: plan.Request{Passes: []string{"reorder", "prune", "trellis=2", "compensate"}}, Steps: []*plan.Step{{Pass: "trellis"}}}
	if unused := unusedPasses(p); strings.Join(unused, " ") != "prune compensate" {
		t.Errorf("%q", unused)
	}
}
