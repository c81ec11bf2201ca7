package verify_test

import (
	"context"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestFaultsAreTold: a check of the context that fails, anywhere in a verification, ends it with its error.
func TestFaultsAreTold(t *testing.T) {
	plain := func(name string) *weights.Model {
		return open(t, testmodel.Folder(t, testmodel.Config(t, name, `{"num_hidden_layers": 1, "n_layer": 1}`), synth.Options{Seed: 1}))
	}
	codes := func(name string) *weights.Model {
		for _, q := range testmodel.Quantisations {
			if q.Name == name {
				return open(t, testmodel.Quantised(t, q, testmodel.With{}))
			}
		}
		t.Fatal(name)
		return nil
	}
	for _, c := range []struct {
		src            *weights.Model
		passes, format string
	}{
		{plain("llama-tiny"), "scale,reorder,signs,sparsify=0.2/16x1,grid=4,round=1", ""},
		{plain("gpt2-tiny"), "reorder,shift,sparsify=0.2/runs", ""},
		{plain("llama-tiny"), "shift=4/epilogue,sparsify=2:4", ""},
		{codes("gptq"), "scale,reorder,signs,scales=2,round=1", ""},
		{codes("fbgemm"), "reorder,signs", ""},
		{open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 1})), "grid=4", "fp8"},
	} {
		o := testplan.Options(t, c.passes, 0)
		if c.format != "" {
			var err error
			o.Format, err = quantise.Parse(c.format)
			ok(t, err)
		}
		out := open(t, testplan.Applied(t, c.src, nil, testplan.With(t, c.src, o)))
		testmodel.EachFault(t, func(ctx context.Context, _ *testmodel.Faults) error {
			_, err := transform.Verify(ctx, c.src, out, transform.VerifyOptions{Workers: 1})
			return err
		})
	}
}
