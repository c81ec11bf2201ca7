package transform_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestUnusableModels: a closed model, or a model without files, is an error and not a panic.
func TestUnusableModels(t *testing.T) {
	open := testmodel.Open(t, testmodel.Random(t, "llama-tiny", 1).Dir)
	closed := testmodel.Open(t, open.Dir)
	testmodel.OK(t, closed.Close())
	passes, err := transform.ParsePasses("round=4")
	testmodel.OK(t, err)
	o := transform.Options{Passes: passes, Cost: testmodel.TogglesCost{}}
	for _, bad := range []struct {
		m    *weights.Model
		want string
	}{{closed, "the model is closed"}, {&weights.Model{}, "the model has no files: open a model with weights.Open"}, {nil, "no model was given"}} {
		_, err := transform.Plan(t.Context(), bad.m, o)
		testmodel.WantError(t, err, bad.want)
		_, err = transform.Convert(t.Context(), bad.m, t.TempDir()+"/out", transform.ConvertOptions{Options: o})
		testmodel.WantError(t, err, bad.want)
		_, err = transform.Verify(t.Context(), bad.m, open, transform.VerifyOptions{})
		testmodel.WantError(t, err, bad.want)
		_, err = transform.Verify(t.Context(), open, bad.m, transform.VerifyOptions{})
		testmodel.WantError(t, err, bad.want)
		_, err = evaluate.New(bad.m, nil, tokens.Set{}, 0)
		testmodel.WantError(t, err, bad.want)
	}
	_, err = transform.Convert(t.Context(), open, "", transform.ConvertOptions{Options: o})
	if testmodel.WantError(t, err, "OUT is missing"); !errors.Is(err, apply.ErrOut) {
		t.Error(err)
	}
	_, err = transform.Convert(t.Context(), open, t.TempDir()+"/none/out", transform.ConvertOptions{Options: o})
	if testmodel.WantError(t, err, "none does not exist: create it first"); !errors.Is(err, apply.ErrOut) || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestUnusableOptions: options that planning or writing would fail on are errors of Validate, and of Plan before it
// reads weights.
func TestUnusableOptions(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	table := append(slices.Clone(transform.Passes), transform.Row{Pass: clearLowest, Check: clearLowestCheck, Reason: "after all others"})
	own, err := table.Parse("clearlowest=2")
	testmodel.OK(t, err)
	namesake := *pass.Round
	const unknown = " is not in Options.Table: set Table to the table that parsed it"
	for _, bad := range []struct {
		change func(o *transform.Options)
		want   string
	}{
		{func(o *transform.Options) { o.Passes = own }, `pass "clearlowest"` + unknown},
		{func(o *transform.Options) { o.Passes = []pass.Choice{{Pass: &namesake, Args: []string{"4"}}} }, `pass "round"` + unknown},
		{func(o *transform.Options) { o.Passes = []pass.Choice{{}} }, "Options.Passes[0] has no pass: use the choices that Table.Parse returns"},
		{func(o *transform.Options) { o.Role = 9 }, "no such role: Role(9); use cost.Stationary or cost.Streaming"},
		{func(o *transform.Options) { o.Workload = cost.Workload{Prefill: -1, Decode: 2} }, "workload of prefill -1 and decode 2: a share is not between 0 and 1"},
		{func(o *transform.Options) { o.Workload = cost.Workload{Prefill: 1, Decode: 1} }, "shares sum to 2, not 1"},
		{func(o *transform.Options) { o.Cost = &cost.Calibration{} }, "the calibration is empty: get one from cost.FindCalibration"},
		{func(o *transform.Options) { o.Cost = (*cost.Calibration)(nil) }, "the calibration is empty"},
	} {
		passes, err := transform.ParsePasses("round=4")
		testmodel.OK(t, err)
		o := transform.Options{Passes: passes, Cost: testmodel.TogglesCost{}}
		bad.change(&o)
		testmodel.WantError(t, o.Validate(), bad.want)
		_, err = transform.Plan(t.Context(), m, o)
		testmodel.WantError(t, err, bad.want)
		_, err = transform.Convert(t.Context(), m, t.TempDir()+"/out", transform.ConvertOptions{Options: o})
		testmodel.WantError(t, err, bad.want)
	}

	p, err := transform.Plan(t.Context(), m, transform.Options{Passes: own, Table: table, Cost: testmodel.TogglesCost{}})
	testmodel.OK(t, err)
	_, err = transform.Apply(t.Context(), m, p, t.TempDir()+"/out", transform.ApplyOptions{})
	if testmodel.WantError(t, err, `there is no pass "clearlowest"`); !errors.Is(err, plan.ErrInvalid) {
		t.Error(err)
	}
}
