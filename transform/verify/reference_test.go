package verify_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestReference: with the reference of a plan, the SNRs of codes are those of the values of source and result against it. Another
// reference is a problem, and a reference of a plan without one is an error.
func TestReference(t *testing.T) {
	m := channels(t)
	near := func(factor float32) *weights.Model { // every second value is larger by a factor
		dir := testmodel.Dequantised(t, m, nil)
		testmodel.Edit(t, dir, func(info weights.Info, data []byte) {
			if f := testmodel.FormatOf(info.DType); len(info.Shape) == 2 {
				for i := 0; i < info.Len(); i += 2 {
					f.SetElem(data, i, f.FromValue(factor*f.Value(f.Elem(data, i))))
				}
			}
		})
		return open(t, dir)
	}
	reference := near(1.03)
	o := testplan.Options(t, "scales=4,round=1", 0)
	o.Reference = reference
	p := testplan.With(t, m, o)
	dir := filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, p, dir, transform.ApplyOptions{Reference: reference})
	ok(t, err)
	out := open(t, dir)
	against := func(out, reference *weights.Model) (*verify.Report, error) {
		return transform.Verify(t.Context(), m, out, transform.VerifyOptions{Reference: reference})
	}
	r, err := against(out, reference)
	ok(t, err)
	want := testmodel.Values(testmodel.TensorOf(t, reference, codesOf))
	snr := func(m *weights.Model) float64 {
		d, err := quant.Describe(m)
		ok(t, err)
		w, _ := d.Weight(codesOf)
		v, err := w.Values(context.Background(), 1)
		ok(t, err)
		var signal, noise float64
		for i, x := range want {
			signal, noise = signal+x*x, noise+(x-float64(v[i]))*(x-float64(v[i]))
		}
		return 10 * math.Log10(signal/noise)
	}
	x := tensorOf(t, r, codesOf)
	if x.ReferenceSNR == nil || math.Abs(*x.ReferenceSNR-snr(out)) > 1e-6 || x.SourceReferenceSNR == nil || math.Abs(*x.SourceReferenceSNR-snr(m)) > 1e-6 {
		t.Errorf("%+v, want %g and %g dB", x, snr(out), snr(m))
	}
	r, err = against(out, near(1.04))
	ok(t, err)
	wantProblem(t, r, "is not the reference that the manifest names")
	without := open(t, convert(t, m.Dir, "scales=4", 0))
	if _, err := against(without, reference); !errors.Is(err, verify.ErrNoReference) {
		t.Errorf("without a reference: %v", err)
	}
	r, err = against(without, nil)
	ok(t, err)
	if x := tensorOf(t, r, codesOf); x.ReferenceSNR != nil || x.SourceReferenceSNR != nil {
		t.Errorf("without a reference: %+v", x)
	}
}

// TestSelectedTensorsAreSeen: weights that a plan leaves alone must not change.
func TestSelectedTensorsAreSeen(t *testing.T) {
	const kept = "model.layers.0.mlp.up_proj.weight"
	src := source(t, "llama-tiny", 0)
	m := open(t, src)
	for _, s := range []plan.Selection{{Ignore: []string{kept}}, {Only: []string{"*.down_proj"}}} {
		o := testplan.Options(t, "round=2", 0)
		o.Selection = s
		p := testplan.With(t, m, o)
		wantOK(t, report(t, src, testplan.Applied(t, m, nil, p)))
		p.Steps = append(p.Steps, testplan.ByTensor(testplan.Make(t, m, "round=2", 0).Steps)[kept]...)
		p.Request.Selection = plan.Selection{}
		out := testplan.Applied(t, m, nil, p)
		wantOK(t, report(t, src, out))
		editManifest(t, out, func(m map[string]any) {
			request := m["plan"].(map[string]any)["request"].(map[string]any)
			if s.Ignore != nil {
				request["ignore"] = []any{kept}
			} else {
				request["only"] = []any{"*.down_proj"}
			}
		})
		wantProblem(t, report(t, src, out), kept+": changed, and the plan's ignore or only excludes this tensor")
	}
}

// TestModelCards: a result's model card has the source's lines. The section and the fields of a conversion may differ.
func TestModelCards(t *testing.T) {
	const front, body = "---\nlicense: mit\nbase_model:\n  - a/b\ntags:\n- x\n---\n", "# Title\n\nText.\n"
	const section = "<!-- lowtoggle: begin -->\nconverted\n<!-- lowtoggle: end -->\n"
	src := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testplan.Narrow), synth.Options{})
	ok(t, os.WriteFile(filepath.Join(src, "README.md"), []byte(front+body), 0o666))
	out := convert(t, src, "round=2", 0)
	wantOK(t, report(t, src, out))
	for _, c := range []struct {
		card string
		same bool
	}{
		{front + body, true},
		{front + body + section, true},
		{front + section + body + section, true},
		{"---\r\nlicense: mit\r\nbase_model: c/d\r\nbase_model_relation: quantized\r\ntags:\r\n- x\r\n---\r\n" + body, true},
		{"---\nlicense: mit\nbase_model:\n- a/b\n- c/d\n\ntags:\n- x\n---  \n" + body, true},
		{"---\nlicense: apache\nbase_model:\n  - a/b\ntags:\n- x\n---\n" + body, false},
		{"---\nlicense: mit\ntags:\n- y\n---\n" + body, false},
		{front + "# Title\n", false},
		{front + body + "More.\n", false},
		{front + body + "base_model: a\n", false},
		{front + body + "<!-- lowtoggle: begin -->\nconverted\n", false},
		{body, false},
	} {
		ok(t, os.WriteFile(filepath.Join(out, "README.md"), []byte(c.card), 0o666))
		r := report(t, src, out)
		if found := slices.ContainsFunc(r.Problems, func(p string) bool {
			return p == "file README.md differs from the source's, outside of the section and fields that a conversion writes"
		}); found == c.same {
			t.Errorf("%q is the same: %v", c.card, !found)
		}
	}
	ok(t, os.Remove(filepath.Join(out, "README.md")))
	wantProblem(t, report(t, src, out), "file README.md is missing from the output")
}

// TestLeftoversAreExpected: files of other frameworks that were not copied are no problem, if the manifest names them. No other file
// may be missing, whatever the manifest says.
func TestLeftoversAreExpected(t *testing.T) {
	src := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testplan.Narrow), synth.Options{})
	ok(t, os.WriteFile(filepath.Join(src, "pytorch_model.bin"), []byte("other weights"), 0o666))
	out := convert(t, src, "round=2", 0)
	if _, err := os.Stat(filepath.Join(out, "pytorch_model.bin")); err == nil {
		t.Fatal("the file was copied")
	}
	wantOK(t, report(t, src, out))
	ok(t, os.Remove(filepath.Join(out, "tokenizer.json")))
	wantProblem(t, report(t, src, out), "file tokenizer.json is missing from the output")
	editManifest(t, out, func(m map[string]any) {
		m["left_out"] = append(m["left_out"].([]any), map[string]any{"path": "tokenizer.json"})
	})
	wantProblem(t, report(t, src, out), "file tokenizer.json is missing from the output")
	editManifest(t, out, func(m map[string]any) { delete(m, "left_out") })
	wantProblem(t, report(t, src, out), "file pytorch_model.bin is missing from the output")
}
