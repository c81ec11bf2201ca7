package transform_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

var (
	prefill = cost.Workload{Prefill: 1}
	mixed   = cost.Workload{Prefill: 0.9, Decode: 0.1}
	decode  = cost.Workload{Decode: 1}
)

// scalesFirst reports whether a recipe begins with the powers of two for decode.
func scalesFirst(t *testing.T, r transform.Recipe) bool {
	t.Helper()
	passes, err := transform.ParsePasses(r.Passes)
	ok(t, err)
	return passes[0].String() == "scale=uncached"
}

// TestRecipesForDecode: lossy recipes scale in decode. They do not change in prefill, nor with tokens, nor does the
// recipe exact.
func TestRecipesForDecode(t *testing.T) {
	m := tiny(t, "llama-tiny", weights.BF16)
	for _, r := range transform.Recipes {
		for _, l := range []cost.Workload{{}, prefill, mixed, decode} {
			suited := r.For(m, nil, l)
			want := r.Name != "exact" && l.Decode > 0
			if scalesFirst(t, suited) != want || !want && suited.Passes != r.Passes || !strings.HasSuffix(suited.Passes, r.Passes) ||
				suited.WithTokens != r.WithTokens || suited.MinSNR != r.MinSNR {
				t.Errorf("%s, %+v: %+v", r.Name, l, suited)
			}
			if again := suited.For(m, nil, l); !reflect.DeepEqual(again, suited) {
				t.Errorf("%s, %+v: %+v, and again %+v", r.Name, l, suited, again)
			}
		}
	}
}

// TestRecipeOptions: options have the recipe's settings for a model and a workload, and are valid with a cost model.
func TestRecipeOptions(t *testing.T) {
	m := tiny(t, "llama-tiny", weights.BF16)
	calibration, err := cost.FindCalibration("h200")
	ok(t, err)
	for _, r := range transform.Recipes {
		r.Selection.Ignore = []string{"lm_head"}
		for _, l := range []cost.Workload{{}, prefill, decode} {
			o, err := r.Options(m, nil, l)
			ok(t, err)
			var names []string
			for _, c := range o.Passes {
				names = append(names, c.String())
			}
			want := l
			if l == (cost.Workload{}) {
				want = prefill
			}
			if o.Workload != want || strings.Join(names, ",") != r.For(m, nil, want).Passes || o.Budget.MinSNR != r.MinSNR ||
				!o.KeepRouters || !reflect.DeepEqual(o.Selection, r.Selection) {
				t.Errorf("%s, %v: %+v", r.Name, l, o)
			}
			o.Cost = calibration
			ok(t, o.Validate())
		}
	}
	near, err := transform.FindRecipe(transform.DefaultRecipe)
	ok(t, err)
	if _, err := near.Options(nil, nil, prefill); err == nil {
		t.Error("no error for a nil model")
	}
	if _, err := near.Options(m, nil, cost.Workload{Prefill: 2}); err == nil {
		t.Error("no error for shares that sum to 2")
	}
}

// TestRecipesScaleInBF16Alone: powers of two are left out if a runtime in FP16, fixed scales of activations or an
// adapter could not handle them.
func TestRecipesScaleInBF16Alone(t *testing.T) {
	byDefault, err := transform.FindRecipe(transform.DefaultRecipe)
	ok(t, err)
	llama := func(d weights.DType) string { return folder(t, config(t, "llama-tiny", ""), synth.Options{DType: d}) }
	retyped := func(retype func(*weights.Info)) string {
		dir := llama(weights.BF16)
		testmodel.Alter(t, dir, func(infos []weights.Info, _ map[string][]byte) []weights.Info {
			for i := range infos {
				retype(&infos[i])
			}
			return infos
		})
		return dir
	}
	stray := llama(weights.BF16)
	ok(t, os.WriteFile(filepath.Join(stray, "adapter_model.bin"), []byte("{}"), 0o666))
	reconfigured := func(fields string) string {
		dir := llama(weights.BF16)
		ok(t, os.WriteFile(filepath.Join(dir, "config.json"), config(t, "llama-tiny", fields), 0o666))
		return dir
	}
	for name, dir := range map[string]string{
		"BF16":                        llama(weights.BF16),
		"F16":                         llama(weights.F16),
		"F32":                         llama(weights.F32),
		"FP8":                         llama(weights.F8E4M3),
		"BF16, to be computed in F16": reconfigured(`{"torch_dtype": "float16", "dtype": "float16"}`),
		"norms in F16": retyped(func(x *weights.Info) {
			if len(x.Shape) == 1 {
				x.DType = weights.F16
			}
		}),
		"quantised":      testmodel.Quantised(t, testmodel.Quantisations[0], testmodel.With{}),
		"unknown family": reconfigured(`{"model_type": "x", "architectures": ["X"]}`),
		"stray adapter":  stray,
	} {
		m := open(t, dir)
		if scales := scalesFirst(t, byDefault.For(m, nil, decode)); scales != (name == "BF16") {
			t.Errorf("%s: the recipe for decode scales: %v", name, scales)
		}
	}
}

// TestRecipesScaleBesideTheCache: in decode the recipes scale no index whose activations a KV cache may store, and
// verify accepts the result.
func TestRecipesScaleBesideTheCache(t *testing.T) {
	for _, name := range []string{"llama-tiny", "deepseek_v2-tiny"} {
		m := tiny(t, name, weights.BF16)
		for _, r := range transform.Recipes[1:] {
			o := recipe(t, r.For(m, nil, decode))
			o.Workload = decode
			p, err := transform.Plan(t.Context(), m, o)
			ok(t, err)
			layout, scaled := layoutOf(t, m), map[string]bool{}
			for _, s := range p.Steps {
				if s.Pass != "scale" {
					continue
				}
				ix := layout.Index(s.Index)
				if scaled[ix.Kind] = true; ix.Cached {
					t.Errorf("%s, %s: %s is scaled", name, r.Name, ix.Name)
				}
			}
			if !scaled["mlp_norm"] || !scaled["attn_norm"] {
				t.Errorf("%s, %s: scaled indices: %v", name, r.Name, scaled)
			}
			checked, err := transform.Verify(t.Context(), m, open(t, applied(t, m, p)), transform.VerifyOptions{})
			if err != nil || !checked.OK {
				t.Errorf("%s, %s: verify: %v, %+v", name, r.Name, err, checked)
			}
		}
	}
}

// TestPowersOfTwoPayInRecipes: for a trained model, the recipes for decode have a larger predicted saving with powers
// of two than without.
func TestPowersOfTwoPayInRecipes(t *testing.T) {
	calibration, err := cost.FindCalibration("h200")
	ok(t, err)
	m, _, _ := testmodel.Trained(t)
	for _, r := range transform.Recipes[1:] {
		energy := func(r transform.Recipe) float64 {
			o := recipe(t, r)
			o.Workload, o.Cost = decode, calibration
			p, err := transform.Plan(t.Context(), m, o)
			ok(t, err)
			return transform.Predicted(m, p).Relative
		}
		if with, without := energy(r.For(m, nil, decode)), energy(r); !(with < without) {
			t.Errorf("%s: predicted are %.4f with powers of two, %.4f without", r.Name, with, without)
		}
	}
}

// TestUncachedKeepsTheCache: the content of a KV cache keeps its bytes. Without lossy passes, neither the rows of
// keys and values nor their inputs change.
func TestUncachedKeepsTheCache(t *testing.T) {
	m := tiny(t, "llama-tiny", weights.BF16)
	o := options(t, "scale=uncached", 0)
	o.Workload = decode
	p, err := transform.Plan(t.Context(), m, o)
	ok(t, err)
	layout := layoutOf(t, m)
	syms := compilerOf(t, m, layout, p.Steps).Symmetries()
	columns := 0
	for _, c := range layout.Claims {
		if c.Role != arch.Linear || !strings.Contains(c.Kind, "attn") {
			continue
		}
		row, col := syms.Matrix(c)
		if slices.ContainsFunc(row.Exp, func(e int) bool { return e != 0 }) {
			t.Errorf("%s: its outputs are scaled by %v", c.Name, row.Exp)
		}
		if slices.ContainsFunc(col.Exp, func(e int) bool { return e != 0 }) {
			if c.Norm == nil {
				t.Errorf("%s: its inputs are scaled by %v", c.Name, col.Exp)
			}
			columns++
		}
	}
	if columns == 0 {
		t.Errorf("no layer of attention is scaled: %v", p.Steps)
	}
}

// TestRecipesOnCodes: recipes with a budget include scales if the model has scales that may change.
func TestRecipesOnCodes(t *testing.T) {
	plain := open(t, folder(t, config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 5}))
	for _, c := range []struct {
		name, recipe       string
		m                  *weights.Model
		passes, withTokens string
	}{
		{"INT4", "near-lossless", quantisedIn(t, "int4=32", synth.Options{Seed: 5}), "scales,grid,round", "scales,trellis,compensate"},
		{"MXFP4", "near-lossless", quantisedIn(t, "mxfp4", synth.Options{Seed: 5}), "grid,round", "trellis,compensate"},
		{"INT4", "exact", quantisedIn(t, "int4=32", synth.Options{Seed: 5}), "scale,reorder,signs", ""},
		{"BF16", "balanced", plain, "grid,round", "trellis,compensate"},
	} {
		r, err := transform.FindRecipe(c.recipe)
		ok(t, err)
		if r = r.For(c.m, nil, cost.Workload{Prefill: 1}); r.Passes != c.passes || r.WithTokens != c.withTokens {
			t.Errorf("%s, %s: %s and with tokens %s, want %s and %s", c.name, c.recipe, r.Passes, r.WithTokens, c.passes, c.withTokens)
		}
	}
}
