package transform_test

import (
	"errors"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestUnusableModels: a model that is closed or has no files is an error that says so, and not a panic.
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
	}{{closed, "the model is closed"}, {&weights.Model{}, "the model has no files: open one with weights.Open"}, {nil, "no model was given"}} {
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
}
