package transform_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// unquantised returns a small Llama in several shards, with the widths that formats need.
func unquantised(t *testing.T) *weights.Model {
	t.Helper()
	return open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 6, ShardBytes: 200_000}))
}

func formatOptions(t *testing.T, format, passes string) transform.Options {
	t.Helper()
	o := transform.Options{Cost: testmodel.TogglesCost{}}
	var err error
	o.Format, err = quantise.Parse(format)
	ok(t, err)
	if passes != "" {
		o.Passes, err = transform.ParsePasses(passes)
		ok(t, err)
	}
	return o
}

// verified checks a result and returns the report.
func verified(t *testing.T, src *weights.Model, out string) *verify.Report {
	t.Helper()
	r, err := transform.Verify(t.Context(), src, open(t, out), transform.VerifyOptions{})
	ok(t, err)
	for _, p := range r.Problems {
		t.Error(p)
	}
	for _, x := range r.Tensors {
		if x.Problem != "" {
			t.Errorf("%s: %s", x.Name, x.Problem)
		}
	}
	return r
}

// TestFormats: a model is converted to every format. The bytes are equal for any number of workers and from the plan.
// Package quant and verify accept the result.
func TestFormats(t *testing.T) {
	src := unquantised(t)
	h := testmodel.HessiansOf(t, src)
	for _, format := range append(quantise.TargetNames(), "int4=32") {
		passes := "scales"
		if format == "int8" || format == "mxfp4" || format == "deepseek-fp8" { // also without any pass
			passes = ""
		}
		if format == "int4" || format == "nvfp4" || format == "fp8" {
			passes = "scales,compensate"
		}
		var want map[string]string
		for _, workers := range []int{1, 3} {
			o := formatOptions(t, format, passes)
			o.Workers = workers
			if strings.Contains(passes, "compensate") {
				o.Hessians = h
			}
			out := filepath.Join(t.TempDir(), "out")
			c, err := transform.Convert(t.Context(), src, out, transform.ConvertOptions{Options: o})
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if want != nil {
				sameFiles(t, files(t, out), want)
				continue
			}
			want = files(t, out)
			if c.Plan.Request.Format != format || c.Plan.DropIn || len(c.Plan.Quantised) > 0 {
				t.Errorf("%s: the plan says %+v", format, c.Plan.Request)
			}
			d, err := quant.Describe(open(t, out))
			ok(t, err)
			if len(d.Weights) != 14 {
				t.Errorf("%s: %d weights are quantised, want 14", format, len(d.Weights))
			}
			lowest := math.Inf(1)
			for _, x := range verified(t, src, out).Tensors {
				if _, made := d.Weight(x.Name); !made && x.Class != verify.Identical {
					t.Errorf("%s: %s is %s", format, x.Name, x.Class)
				} else if made {
					lowest = min(lowest, *x.SNR)
				}
			}
			least := map[byte]float64{'f': 27, 'd': 27, 'i': 11, 'm': 14, 'n': 16}[format[0]]
			if o.Hessians != nil {
				least /= 2 // compensation lowers the error of outputs, not of values
			}
			if lowest < least {
				t.Errorf("%s: a weight has %.1f dB, want %.0f", format, lowest, least)
			}
			again := filepath.Join(t.TempDir(), "again")
			decoded, err := plan.Decode(testplan.Encoded(t, c.Plan))
			ok(t, err)
			_, err = transform.Apply(t.Context(), src, decoded, again, transform.ApplyOptions{Hessians: o.Hessians})
			ok(t, err)
			sameFiles(t, files(t, again), want)
		}
	}
}

// TestFormatCompensates: compensate alone chooses other codes than the nearest, under the same scales.
func TestFormatCompensates(t *testing.T) {
	src := unquantised(t)
	h := testmodel.HessiansOf(t, src)
	var nearest map[string]string
	for _, passes := range []string{"", "compensate", "compensate=0.01"} {
		o := formatOptions(t, "int4", passes)
		o.Hessians = h
		out := filepath.Join(t.TempDir(), "out")
		c, err := transform.Convert(t.Context(), src, out, transform.ConvertOptions{Options: o})
		ok(t, err)
		d, err := quant.Describe(open(t, out))
		ok(t, err)
		if nearest == nil {
			nearest = map[string]string{}
			for _, w := range d.Weights {
				for _, x := range w.Tensors {
					nearest[x.Name] = string(x.Data)
				}
			}
			continue
		}
		if len(c.Plan.Steps) != 14 {
			t.Errorf("%s: %d steps", passes, len(c.Plan.Steps))
		}
		for _, s := range c.Plan.Steps {
			if s.Data != any(pass.Damping{Damp: 0.01}) {
				t.Errorf("%s: the damping is %v", passes, s.Data)
			}
		}
		for _, w := range d.Weights {
			for _, x := range w.Tensors {
				if same := nearest[x.Name] == string(x.Data); same == (x.Role == quant.Codes) {
					t.Errorf("%s: %s (%s) has the same bytes: %v", passes, x.Name, x.Role, same)
				}
			}
		}
		verified(t, src, out)
	}
}

// TestFormatScales: scales of two bits have two mantissa bits, and cause less error than scales without mantissa
// bits.
func TestFormatScales(t *testing.T) {
	src := unquantised(t)
	last := math.Inf(1)
	for _, passes := range []string{"scales=2", "scales=0"} {
		out := filepath.Join(t.TempDir(), "out")
		_, err := transform.Convert(t.Context(), src, out, transform.ConvertOptions{Options: formatOptions(t, "int4", passes)})
		ok(t, err)
		bits := int(passes[len(passes)-1] - '0')
		d, err := quant.Describe(open(t, out))
		ok(t, err)
		for _, w := range d.Weights {
			m, err := w.Read(0)
			ok(t, err)
			for _, s := range m.Scales {
				if f, _ := math.Frexp(float64(s)); math.Ldexp(f, bits+1) != math.Trunc(math.Ldexp(f, bits+1)) {
					t.Fatalf("%s: %s has the scale %g", passes, w.Name, s)
				}
			}
		}
		lowest := math.Inf(1)
		for _, x := range verified(t, src, out).Tensors {
			if x.SNR != nil {
				lowest = min(lowest, *x.SNR)
			}
		}
		if lowest >= last {
			t.Errorf("%s: %.2f dB, no worse than with more bits", passes, lowest)
		}
		last = lowest
	}
}

// TestFormatResumes: a conversion that is interrupted after its first shard ends with the same bytes.
func TestFormatResumes(t *testing.T) {
	src := unquantised(t)
	o := transform.ConvertOptions{Options: formatOptions(t, "nvfp4", "scales=2")}
	whole := filepath.Join(t.TempDir(), "whole")
	_, err := transform.Convert(t.Context(), src, whole, o)
	ok(t, err)
	out := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Progress = func(e transform.Event) {
		if e.Stage == "write" && e.Done > e.Total/2 {
			cancel()
		}
	}
	if _, err := transform.Convert(ctx, src, out, o); err == nil {
		t.Fatal("an interrupted conversion succeeded")
	}
	p, err := transform.Unfinished(out)
	ok(t, err)
	if p == nil || p.Request.Format != "nvfp4" {
		t.Fatalf("the unfinished plan is %+v", p)
	}
	o.Progress, o.Resume, o.Given = nil, true, p
	_, err = transform.Convert(t.Context(), src, out, o)
	ok(t, err)
	sameFiles(t, files(t, out), files(t, whole))
}

func TestFormatErrors(t *testing.T) {
	src := unquantised(t)
	out := filepath.Join(t.TempDir(), "out")
	least, most := 20., 0.1
	for _, c := range []struct {
		change func(o *transform.Options)
		want   string
	}{
		{func(o *transform.Options) { o.Budget.MinSNR = &least }, "a new format and a budget cannot be combined"},
		{func(o *transform.Options) { o.Budget.MaxLoss = &most }, "a new format and a budget cannot be combined"},
		{func(o *transform.Options) { o.Passes, _ = transform.ParsePasses("signs,scales") }, "signs does not choose codes"},
		{func(o *transform.Options) { o.Format, _ = quantise.Parse("gptq") }, "models are not converted to the format gptq"},
		{func(o *transform.Options) { o.Format, _ = quantise.Parse("int4=192") }, "128 inputs, which is not a multiple of the group size 192"},
		{func(o *transform.Options) { o.Passes, _ = transform.ParsePasses("scales,compensate") }, "give tokens"},
	} {
		o := formatOptions(t, "int4", "scales")
		c.change(&o)
		_, err := transform.Convert(t.Context(), src, out, transform.ConvertOptions{Options: o})
		wantError(t, err, c.want)
	}
	quantised := open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Format: formatOptions(t, "fp8", "").Format}))
	_, err := transform.Convert(t.Context(), quantised, out, transform.ConvertOptions{Options: formatOptions(t, "int4", "scales")})
	wantError(t, err, "is quantised already (14 weights in fp8")
	edit(t, src.Dir, func(info weights.Info, data []byte) {
		if info.Name == "model.layers.1.mlp.up_proj.weight" {
			data[6], data[7] = 0x80, 0x7F
		}
	})
	_, err = transform.Convert(t.Context(), open(t, src.Dir), out, transform.ConvertOptions{Options: formatOptions(t, "int4", "scales")})
	wantError(t, err, `tensor "model.layers.1.mlp.up_proj.weight"`, "element 3 is +Inf, which no code represents")
	if left := files(t, filepath.Dir(out)); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
}

// TestFormatIsVerified: verify finds scales with too many bits, other values, missing tensors and another config.
func TestFormatIsVerified(t *testing.T) {
	src := unquantised(t)
	made := filepath.Join(t.TempDir(), "made")
	_, err := transform.Convert(t.Context(), src, made, transform.ConvertOptions{Options: formatOptions(t, "int4", "scales=1")})
	ok(t, err)
	const up = "model.layers.0.mlp.up_proj."
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"scale": {func(t *testing.T, dir string) {
			edit(t, dir, func(info weights.Info, data []byte) {
				if info.Name == up+"weight_scale" {
					data[0] |= 1
				}
			})
		}, "which has more than 1 mantissa bit"},
		"codes of another weight": {func(t *testing.T, dir string) {
			edit(t, dir, func(info weights.Info, data []byte) {
				if info.Name == up+"weight_packed" {
					for i := range data {
						data[i] ^= 0x77
					}
				}
			})
		}, "the codes do not represent the source's values"},
		"some codes": {func(t *testing.T, dir string) {
			edit(t, dir, func(info weights.Info, data []byte) {
				if info.Name == up+"weight_packed" {
					for i := range len(data) / 16 {
						data[16*i] ^= 1
					}
				}
			})
		}, "dB, and the manifest claims"},
		"kept tensor": {func(t *testing.T, dir string) {
			edit(t, dir, func(info weights.Info, data []byte) {
				if info.Name == "lm_head.weight" {
					data[0] ^= 1
				}
			})
		}, "lm_head.weight"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			ok(t, os.CopyFS(dir, os.DirFS(made)))
			c.change(t, dir)
			r, err := transform.Verify(t.Context(), src, open(t, dir), transform.VerifyOptions{})
			ok(t, err)
			js, err := json.Marshal(r)
			ok(t, err)
			if r.OK || !strings.Contains(string(js), c.want) || !strings.Contains(string(js), "changed after the conversion") {
				t.Errorf("the report is %s", js)
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "out")
	ok(t, os.CopyFS(dir, os.DirFS(made)))
	js, err := os.ReadFile(filepath.Join(dir, "config.json"))
	ok(t, err)
	ok(t, os.Chmod(filepath.Join(dir, "config.json"), 0o666))
	ok(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(strings.Replace(string(js), `"rms_norm_eps"`, `"norm_eps"`, 1)), 0o666))
	r, err := transform.Verify(t.Context(), src, open(t, dir), transform.VerifyOptions{})
	ok(t, err)
	if r.OK || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "config.json differs from the source's in other fields than quantization_config") {
		t.Errorf("problems %q", r.Problems)
	}
}

// TestFormatPasses: the default passes include scales if the format has a choice of scales.
func TestFormatPasses(t *testing.T) {
	for format, want := range map[string][2]string{"int4": {"scales", "scales,compensate"}, "fp8": {"scales", "scales,compensate"},
		"nvfp4": {"scales", "scales,compensate"}, "int8": {"", "compensate"}, "mxfp4": {"", "compensate"}} {
		f, err := quantise.Parse(format)
		ok(t, err)
		if have := [2]string{transform.FormatPasses(f, false), transform.FormatPasses(f, true)}; have != want {
			t.Errorf("%s: %q, want %q", format, have, want)
		}
	}
}

// TestOnceDropIn: older versions called a result in a new format drop-in. Their plans and results are accepted.
func TestOnceDropIn(t *testing.T) {
	m := unquantised(t)
	p, err := transform.Plan(t.Context(), m, formatOptions(t, "int4", "scales=2"))
	ok(t, err)
	if p.DropIn {
		t.Error("a new format is called drop-in")
	}
	p.DropIn = true
	out := filepath.Join(t.TempDir(), "out")
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	ok(t, err)
	if r := verified(t, m, out); r.DropIn {
		t.Error("the result is reported as drop-in")
	}
}
