package transform_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// recoded converts a quantised checkpoint with passes for codes, and verifies the result. It returns the plan, the
// result and the names of the changed tensors.
func recoded(t *testing.T, m *weights.Model, o transform.Options) (*plan.Plan, *weights.Model, []string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	c, err := transform.Convert(t.Context(), m, out, transform.ConvertOptions{Options: o})
	if err != nil {
		t.Fatal(err)
	}
	result := open(t, out)
	var changed []string
	for _, info := range m.Infos() {
		if !bytes.Equal(tensorOf(t, m, info.Name).Data, tensorOf(t, result, info.Name).Data) {
			changed = append(changed, info.Name)
		}
	}
	r, err := transform.Verify(t.Context(), m, result, transform.VerifyOptions{})
	ok(t, err)
	for _, p := range r.Problems {
		t.Error(p)
	}
	for _, x := range r.Tensors {
		if x.Problem != "" {
			t.Errorf("%s: %s", x.Name, x.Problem)
		}
	}
	return c.Plan, result, changed
}

// TestPassesForCodes: in every readable layout, each pass for codes either changes codes and verify accepts them, or
// a note gives the reason why not.
func TestPassesForCodes(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := open(t, testmodel.Quantised(t, q, testmodel.With{}))
		d, err := quant.Describe(m)
		ok(t, err)
		w := d.Weights[0]
		if w.CanRead() != nil {
			continue
		}
		for _, passes := range []string{"zeros", "scales=2", "scales=0", "round=1", "grid=2", "trellis=10", "scales,round=1", "scales=1,trellis=0.1"} {
			t.Run(q.Name+" "+passes, func(t *testing.T) {
				p, _, changed := recoded(t, m, options(t, passes, 0))
				codes := 0
				for _, name := range changed {
					if _, role, ok := d.Tensor(name); ok {
						codes++
						if role != quant.Codes && role != quant.Scales {
							t.Errorf("%s changed, which holds %s", name, role)
						}
					}
				}
				noted := false
				for _, n := range p.Notes {
					noted = noted || strings.Contains(n, w.Format.String())
				}
				if codes == 0 && !noted {
					t.Errorf("no code changed; steps %v, notes %q", len(p.Steps), p.Notes)
				}
			})
		}
	}
}

// TestScalesOfFewBits: INT4 with scales of two mantissa bits. The error relative to the checkpoint's values stays
// small.
func TestScalesOfFewBits(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		if q.Name != "pack-quantized" {
			continue
		}
		m := open(t, testmodel.Quantised(t, q, testmodel.With{}))
		_, result, _ := recoded(t, m, options(t, "scales=2", 0))
		d, err := quant.Describe(result)
		ok(t, err)
		for _, w := range d.Weights {
			x, err := w.Read(0)
			ok(t, err)
			for _, s := range x.Scales {
				if f, _ := math.Frexp(float64(s)); f*8 != math.Trunc(f*8) {
					t.Fatalf("%s: a scale of %g", w.Name, s)
				}
			}
		}
	}
}

// quantisedIn writes a small random model in a format.
func quantisedIn(t *testing.T, format string, o synth.Options) *weights.Model {
	t.Helper()
	f, err := quantise.Parse(format)
	ok(t, err)
	o.Format = f
	return open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), o))
}

// TestCodesAreTheSameForAnyWorkers: passes for codes, with and without the layers' inputs, in several shards, and
// after an interruption.
func TestCodesAreTheSameForAnyWorkers(t *testing.T) {
	for format, passes := range map[string]string{"int4=64": "scales=1,trellis=1,compensate", "deepseek-fp8": "scales,round=1", "nvfp4": "scales=0,grid=2,compensate"} {
		m := quantisedIn(t, format, synth.Options{Seed: 3, ShardBytes: 40_000})
		o := options(t, passes, 0)
		if strings.Contains(passes, "compensate") {
			o.Hessians = testmodel.HessiansOf(t, m)
		}
		var want map[string]string
		for _, workers := range []int{1, 3} {
			o.Workers = workers
			out := filepath.Join(t.TempDir(), "out")
			_, err := transform.Convert(t.Context(), m, out, transform.ConvertOptions{Options: o})
			ok(t, err)
			got := files(t, out)
			if want == nil {
				want = got
			}
			sameFiles(t, got, want)
		}
		out := filepath.Join(t.TempDir(), "out")
		ctx, cancel := context.WithCancel(t.Context())
		o.Progress = func(e transform.Event) {
			if e.Stage == "write" && e.Done > e.Total/2 {
				cancel()
			}
		}
		if _, err := transform.Convert(ctx, m, out, transform.ConvertOptions{Options: o}); err == nil {
			t.Fatalf("%s: the conversion was not interrupted", format)
		}
		o.Progress = nil
		_, err := transform.Convert(t.Context(), m, out, transform.ConvertOptions{Options: o, Resume: true})
		ok(t, err)
		sameFiles(t, files(t, out), want)
	}
}

// TestCodesKeepTheBudget: no layer's output SNR is below the budget, and some layers change.
func TestCodesKeepTheBudget(t *testing.T) {
	for _, format := range []string{"int4=32", "fp8", "fp8-block", "nvfp4"} {
		m := quantisedIn(t, format, synth.Options{Seed: 5})
		for _, least := range []float64{15, 25} {
			o := options(t, "scales,round,grid", 0)
			o.Budget.MinSNR = &least
			p, _, changed := recoded(t, m, o)
			if least < 20 && len(changed) == 0 {
				t.Errorf("%s: no layer changed within %g dB", format, least)
			}
			for _, x := range p.Predictions {
				if x.SNR != nil && *x.SNR < least {
					t.Errorf("%s: %s has %g dB", format, x.Tensor, *x.SNR)
				}
			}
		}
	}
}

// TestReference: codes chosen for the original are nearer to it than the nearest codes under other scales, and the
// plan names the original.
func TestReference(t *testing.T) {
	original := open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 5}))
	m := quantisedIn(t, "int4=32", synth.Options{Seed: 5})
	o := options(t, "scales=2", 0)
	without, _, _ := recoded(t, m, o)
	o.Reference = original
	p, _, _ := recoded(t, m, o)
	if p.Request.Reference == "" || without.Request.Reference != "" {
		t.Errorf("references %q and %q", p.Request.Reference, without.Request.Reference)
	}
	for _, x := range p.Predictions {
		if d, _ := quant.Describe(m); x.SourceSNR == nil || x.SNR == nil {
			if _, quantised := d.Weight(x.Tensor); quantised {
				t.Errorf("%s: no output SNR", x.Tensor)
			}
		} else if *x.SNR < *x.SourceSNR-0.2 {
			t.Errorf("%s: %.2f dB against the original, and %.2f before", x.Tensor, *x.SNR, *x.SourceSNR)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	wantError(t, err, "the plan needs its reference model")
	_, err = transform.Apply(t.Context(), m, without, out, transform.ApplyOptions{Reference: original})
	wantError(t, err, "the plan was made without a reference")
	other := open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 6}))
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Reference: other})
	wantError(t, err, "another reference")
	for ref, text := range map[*weights.Model]string{
		m: "is quantised here too", tiny(t, "llama-tiny", weights.BF16): "has shape", other: "is not the model that " + m.Dir + " was made from"} {
		o.Reference = ref
		_, err = transform.Plan(t.Context(), m, o)
		wantError(t, err, text)
	}
	o.Reference = original
	_, err = transform.Plan(t.Context(), original, o)
	wantError(t, err, "a reference changes nothing: leave the reference out")
}

// TestVerifyFindsOtherCodes: a changed code or scale without a step is a problem of its tensor, even if the
// manifest's checksums fit.
func TestVerifyFindsOtherCodes(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := open(t, testmodel.Quantised(t, q, testmodel.With{}))
		d, err := quant.Describe(m)
		ok(t, err)
		w := d.Weights[0]
		if w.CanRead() != nil {
			continue
		}
		for _, passes := range []string{"zeros", "round=1", "grid=16"} {
			_, result, changed := recoded(t, m, options(t, passes, 0))
			if len(changed) == 0 || passes == "zeros" && !slices.Contains(changed, w.Tensors[0].Name) {
				continue
			}
			for _, part := range w.Tensors {
				if part.Role != quant.Codes && part.Role != quant.Scales {
					continue
				}
				dir := filepath.Join(t.TempDir(), "altered")
				ok(t, os.CopyFS(dir, os.DirFS(result.Dir)))
				edit(t, dir, func(info weights.Info, data []byte) {
					if info.Name == part.Name {
						data[0] ^= 5 // two bits of codes, a small change of scales
					}
				})
				r, err := transform.Verify(t.Context(), m, open(t, dir), transform.VerifyOptions{})
				ok(t, err)
				if !slices.ContainsFunc(r.Tensors, func(x verify.Tensor) bool { return x.Problem != "" }) {
					t.Errorf("%s, %s: verify misses a changed byte of %s", q.Name, passes, part.Name)
				}
			}
		}
	}
}

// TestCodesArePredictedAsTheyAreVerified: a plan's energy is the energy of the written codes, in prefill and decode.
func TestCodesArePredictedAsTheyAreVerified(t *testing.T) {
	calibration, err := cost.FindCalibration("h200")
	ok(t, err)
	for _, format := range []string{"int4=32", "nvfp4", "fp8-block"} {
		m := quantisedIn(t, format, synth.Options{Seed: 5})
		for _, load := range []cost.Workload{{Prefill: 1}, {Decode: 1}} {
			o := options(t, "scales=1,round=1", 0)
			o.Cost, o.Workload = calibration, load
			p, result, _ := recoded(t, m, o)
			before, err := quant.Describe(m)
			ok(t, err)
			after, err := quant.Describe(result)
			ok(t, err)
			for _, x := range p.Predictions {
				w, quantised := before.Weight(x.Tensor)
				if !quantised {
					continue
				}
				made, _ := after.Weight(x.Tensor)
				e, err := predict.Quantised(t.Context(), calibration, made, w, 0, o.Role, load)
				ok(t, err)
				if math.Abs(e.Relative-x.After.Relative) > 1e-6 {
					t.Errorf("%s, %v: %s is predicted to take %v, and takes %v", format, load, x.Tensor, x.After.Relative, e.Relative)
				}
			}
		}
	}
}

// TestStepsWithoutEffect: a grid finer than all codes of INT4 gives no step, and a note says so. With a reference it
// gives steps, because codes change.
func TestStepsWithoutEffect(t *testing.T) {
	plain := unquantised(t)
	four := quantisedIn(t, "int4", synth.Options{Seed: 6})
	reference := open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 6}))
	for _, c := range []struct {
		name, passes string
		m            *weights.Model
		change       func(o *transform.Options)
		steps        int
	}{
		{"codes", "grid=16", four, func(*transform.Options) {}, 0},
		{"codes", "grid=1", four, func(*transform.Options) {}, 14},
		{"format", "grid=16", plain, func(o *transform.Options) { o.Format = formatOptions(t, "int4", "").Format }, 0},
		{"format", "grid=1", plain, func(o *transform.Options) { o.Format = formatOptions(t, "int4", "").Format }, 14},
		{"reference", "grid=16", four, func(o *transform.Options) { o.Reference = reference }, 14},
	} {
		o := options(t, c.passes, 0)
		c.change(&o)
		p, err := transform.Plan(t.Context(), c.m, o)
		ok(t, err)
		steps := 0
		for _, s := range p.Steps {
			if strings.Contains(s.Tensor, "layers.") {
				steps++
			}
		}
		note := c.passes + " changes no codes and no scales of 14 weights in int4, groups of 128 (compressed-tensors)"
		noted := slices.ContainsFunc(p.Notes, func(n string) bool { return strings.HasPrefix(n, note) })
		if steps != c.steps || noted != (c.steps == 0) {
			t.Errorf("%s, %s: %d steps, want %d; notes %q", c.name, c.passes, steps, c.steps, p.Notes)
		}
	}
}

// TestReferenceBelowTheBudget: a quantised layer is reported as missed if its output SNR against the reference is
// below the budget, with and without passes' arguments, unless the source's SNR suffices. The layer's codes are at
// least as near to the reference as the source's.
func TestReferenceBelowTheBudget(t *testing.T) {
	m := quantisedIn(t, "int4=32", synth.Options{Seed: 5})
	least := 60.0
	for _, c := range []struct {
		passes   string
		orSource bool
		missed   int
	}{{"scales", false, 14}, {"scales=2", false, 14}, {"scales", true, 0}} {
		o := options(t, c.passes, 0)
		o.Budget.MinSNR, o.Budget.OrSource = &least, c.orSource
		o.Reference = open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 5}))
		p, result, _ := recoded(t, m, o)
		missed, better := 0, 0
		for _, x := range p.Predictions {
			if x.SourceSNR == nil {
				continue
			}
			if x.Missed == "no choice of codes reaches an output SNR of 60 dB relative to the reference" {
				missed++
			}
			if *x.SNR < *x.SourceSNR {
				t.Errorf("%s: %s has %.2f dB, and the source %.2f dB", c.passes, x.Tensor, *x.SNR, *x.SourceSNR)
			}
			if *x.SNR > *x.SourceSNR {
				better++
			}
		}
		if missed != c.missed || better < 10 {
			t.Errorf("%s: %d of 14 layers are missed, want %d; %d are better than the source", c.passes, missed, c.missed, better)
		}
		r, err := transform.Verify(t.Context(), m, result, transform.VerifyOptions{Reference: o.Reference})
		if ok(t, err); !r.OK {
			t.Errorf("%s: the result does not agree with the plan", c.passes)
		}
	}
}

// TestCodesWithoutABudgetHaveAnSNR: a plan without a budget has its layers' output SNR, and verify checks the
// result's.
func TestCodesWithoutABudgetHaveAnSNR(t *testing.T) {
	m := quantisedIn(t, "fp8", synth.Options{Seed: 5})
	for _, passes := range []string{"scales=2", "round=2", "trellis=0.1"} {
		p, result, _ := recoded(t, m, options(t, passes, 0))
		for _, x := range p.Predictions {
			if _, role, _ := describe(t, m).Tensor(x.Tensor); role == quant.Codes && (x.SampleSNR == nil || *x.SampleSNR < 5 || *x.SampleSNR > 40) {
				t.Errorf("%s: %s has an output SNR of %v", passes, x.Tensor, x.SampleSNR)
			}
		}
		dir := filepath.Join(t.TempDir(), "altered")
		ok(t, os.CopyFS(dir, os.DirFS(result.Dir)))
		edit(t, dir, func(info weights.Info, data []byte) {
			if info.Name == "model.layers.0.mlp.up_proj.weight" {
				for i := range data {
					data[i] &^= 0x0F // a change that only the claims of trellis allow
				}
			}
		})
		r, err := transform.Verify(t.Context(), m, open(t, dir), transform.VerifyOptions{})
		ok(t, err)
		if r.OK || passes == "trellis=0.1" && !slices.ContainsFunc(r.Tensors, func(x verify.Tensor) bool { return strings.Contains(x.Problem, "the manifest claims") }) {
			t.Errorf("%s: verify misses other codes", passes)
		}
	}
}

func describe(t *testing.T, m *weights.Model) *quant.Description {
	t.Helper()
	d, err := quant.Describe(m)
	ok(t, err)
	return d
}

// manifestWith copies a result and replaces text in its manifest.
func manifestWith(t *testing.T, result *weights.Model, old, new string) *weights.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "altered")
	ok(t, os.CopyFS(dir, os.DirFS(result.Dir)))
	path := filepath.Join(dir, plan.ManifestName)
	js, err := os.ReadFile(path)
	ok(t, err)
	if !bytes.Contains(js, []byte(old)) {
		t.Fatalf("the manifest has no %s", old)
	}
	ok(t, os.WriteFile(path, bytes.ReplaceAll(js, []byte(old), []byte(new)), 0o666))
	return open(t, dir)
}

// TestPlacedScalesAreChecked: FP8 scales have the claimed place, for codes, for a new format and with a reference.
func TestPlacedScalesAreChecked(t *testing.T) {
	original := open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 5}))
	near := options(t, "scales=3", 0)
	near.Reference = original
	for name, c := range map[string]struct {
		m *weights.Model
		o transform.Options
	}{
		"codes":        {quantisedIn(t, "fp8", synth.Options{Seed: 5}), options(t, "scales=3", 0)},
		"blocks":       {quantisedIn(t, "fp8-block", synth.Options{Seed: 5}), options(t, "scales=3,round=1", 0)},
		"a reference":  {quantisedIn(t, "fp8", synth.Options{Seed: 5}), near},
		"a new format": {original, formatOptions(t, "fp8", "scales=3")},
	} {
		_, result, _ := recoded(t, c.m, c.o)
		for _, bits := range []string{"1", "5"} {
			r, err := transform.Verify(t.Context(), c.m, manifestWith(t, result, `{"bits":3}`, `{"bits":`+bits+`}`), transform.VerifyOptions{Reference: c.o.Reference})
			ok(t, err)
			if !slices.ContainsFunc(r.Tensors, func(x verify.Tensor) bool {
				return strings.Contains(x.Problem, "the manifest claims about 2^"+bits+" times")
			}) {
				t.Errorf("%s: codes placed at 2^3 pass for 2^%s", name, bits)
			}
		}
	}
}

// TestVerifyHoldsTheReference: with the reference, verify checks the SNRs of the plan, also for layers that keep
// their codes.
func TestVerifyHoldsTheReference(t *testing.T) {
	m := quantisedIn(t, "int4=32", synth.Options{Seed: 5})
	o := options(t, "scales=1", 0)
	o.Reference = open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 5}))
	report := func(out, reference *weights.Model) *verify.Report {
		r, err := transform.Verify(t.Context(), m, out, transform.VerifyOptions{Reference: reference})
		ok(t, err)
		return r
	}
	var result *weights.Model
	var claims map[string]plan.Prediction
	for _, passes := range []string{"zeros", "scales=1"} { // zeros changes no layer
		o.Passes = options(t, passes, 0).Passes
		var p *plan.Plan
		p, result, _ = recoded(t, m, o)
		claims = map[string]plan.Prediction{}
		for _, x := range p.Predictions {
			claims[x.Tensor+"_packed"] = x
		}
		held := 0
		for _, x := range report(result, o.Reference).Tensors {
			c := claims[x.Name]
			if x.Problem != "" || (x.ReferenceSNR != nil) != (c.SNR != nil) || (x.Class == verify.Untouched) != (passes == "zeros") && c.SNR != nil {
				t.Errorf("%s: %s: %s, %q, %v", passes, x.Name, x.Class, x.Problem, x.ReferenceSNR)
			}
			if x.ReferenceSNR != nil {
				held++
				if math.Abs(*x.ReferenceSNR-*c.SNR) > 0.01 || math.Abs(*x.SourceReferenceSNR-*c.SourceSNR) > 0.01 {
					t.Errorf("%s: %s: %v and %v dB, planned %v and %v", passes, x.Name, *x.ReferenceSNR, *x.SourceReferenceSNR, *c.SNR, *c.SourceSNR)
				}
			}
		}
		if held != 14 {
			t.Errorf("%s: %d layers are held against the reference", passes, held)
		}
	}
	better := *claims["model.layers.0.mlp.up_proj.weight_packed"].SNR
	text := fmt.Sprintf(`"snr_db":%v,`, better)
	lie := manifestWith(t, result, text, fmt.Sprintf(`"snr_db":%v,`, better+1))
	wrong := func(x verify.Tensor) bool {
		return strings.Contains(x.Problem, "the output SNR relative to the reference is ") && strings.Contains(x.Problem, "and the manifest claims")
	}
	if r := report(lie, o.Reference); !slices.ContainsFunc(r.Tensors, wrong) {
		t.Error("a higher SNR against the reference is believed")
	}
	if r := report(result, m); r.OK || len(r.Problems) == 0 || !strings.Contains(r.Problems[0], "is not the reference that the manifest names") {
		t.Errorf("another model passes for the reference: %q", r.Problems)
	}
	_, plain, _ := recoded(t, m, options(t, "scales=1", 0))
	if _, err := transform.Verify(t.Context(), m, plain, transform.VerifyOptions{Reference: o.Reference}); !errors.Is(err, verify.ErrNoReference) {
		t.Error(err)
	}
}
