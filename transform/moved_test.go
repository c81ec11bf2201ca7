package transform_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// movable are the exact changes that formats allow, for the FFN's 256 neurons.
var movable = map[string]struct {
	unit          int  // neurons that must stay together
	signs, powers bool // allowed by the test's codes and scales
}{
	"compressed fp8 tensor":     {1, true, false}, // input_scale
	"compressed fp8 channel":    {1, true, true},
	"compressed fp8 block":      {128, true, true},
	"fp8 block":                 {128, true, true},
	"fbgemm":                    {1, true, true},
	"modelopt fp8":              {1, true, false}, // input_scale
	"modelopt nvfp4":            {16, true, false},
	"compressed int8":           {1, true, true},
	"pack-quantized":            {32, true, true},
	"pack-quantized asymmetric": {1, false, true}, // g_idx
	"gptq":                      {1, false, true}, // g_idx
	"gptq v2":                   {1, false, true}, // g_idx
	"awq":                       {64, false, true},
	"compressed mxfp4":          {32, true, true},
	"compressed nvfp4":          {16, true, false}, // input_global_scale
}

// movableModel returns a model in a layout in which all symmetric codes have negatives.
func movableModel(t *testing.T, q testmodel.Quantisation) *weights.Model {
	t.Helper()
	dir := testmodel.Quantised(t, q, testmodel.With{})
	edit(t, dir, func(info weights.Info, data []byte) {
		for i, b := range data {
			switch {
			case info.DType == weights.I8 && b == 0x80:
				data[i] = 0x81
			case q.Name == "pack-quantized" && strings.HasSuffix(info.Name, "weight_packed"):
				if b&0xF == 0 {
					b |= 1
				}
				if b&0xF0 == 0 {
					b |= 0x10
				}
				data[i] = b
			}
		}
	})
	return open(t, dir)
}

// inUnits returns a random order of n labels. Units stay together, in any order within a unit.
func inUnits(n, unit int, random *rand.Rand) []int {
	var order []int
	for _, block := range random.Perm(n / unit) {
		for _, i := range random.Perm(unit) {
			order = append(order, block*unit+i)
		}
	}
	return order
}

// moves returns orders, signs and powers of two that a format allows, on the FFN and on the residual stream.
func moves(name string, random *rand.Rand) []*plan.Step {
	allowed := movable[name]
	steps := []*plan.Step{
		{Pass: "reorder", Index: "layers.0.ffn", Data: inUnits(256, allowed.unit, random)},
		{Pass: "reorder", Index: "residual", Data: inUnits(128, min(allowed.unit, 128), random)},
		{Pass: "reorder", Index: "layers.1.kv.1.v", Data: inUnits(32, min(allowed.unit, 32), random)},
	}
	if allowed.signs {
		var flip []int
		for i := range 256 {
			if random.IntN(2) == 0 {
				flip = append(flip, i)
			}
		}
		steps = append(steps, &plan.Step{Pass: "signs", Index: "layers.0.ffn", Data: flip},
			&plan.Step{Pass: "signs", Index: "residual", Data: flip[:slices.IndexFunc(flip, func(i int) bool { return i >= 128 })]})
	}
	if allowed.powers {
		exponents := make([]int, 256)
		for i := range exponents {
			if exponents[i] = 2; name == "pack-quantized" || name == "compressed mxfp4" || name == "awq" || strings.HasSuffix(name, "block") {
				exponents[i] = i/allowed.unit%3 - 1
			}
		}
		steps = append(steps, &plan.Step{Pass: "scale", Index: "layers.0.ffn", Data: exponents})
	}
	return steps
}

// TestExactChangesOfCodes: in every readable layout, an exact change of codes gives, bit for bit, the values of the
// same change in an unquantised model of the source's values. verify accepts only this result.
func TestExactChangesOfCodes(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		if _, known := movable[q.Name]; !known {
			continue
		}
		t.Run(q.Name, func(t *testing.T) {
			m := movableModel(t, q)
			steps := moves(q.Name, rand.New(rand.NewPCG(1, uint64(len(q.Name)))))
			p := planOf(t, m, steps...)
			result := open(t, applied(t, m, p))
			plain := open(t, testmodel.Dequantised(t, m, nil))
			want := testplan.Under(t, testmodel.TensorsOf(plain), plain, nil, steps)
			got := open(t, testmodel.Dequantised(t, result, nil))
			f, _ := weights.F32.Format()
			moved := 0
			for name, x := range want {
				b, was := tensorOf(t, got, name), tensorOf(t, plain, name)
				for i := range x.Len() {
					v, w := f.Value(f.Elem(x.Data, i)), f.Value(f.Elem(b.Data, i))
					if v != w {
						t.Fatalf("%s: value %d is %g, want %g", name, i, w, v)
					}
					if f.Value(f.Elem(was.Data, i)) != w {
						moved++
					}
				}
			}
			if moved == 0 {
				t.Error("no code moved")
			}
			wellMoved(t, m, result)
			alteredCodes(t, m, result, q)
		})
	}
}

// wellMoved verifies a result of exact changes.
func wellMoved(t *testing.T, m, result *weights.Model) {
	t.Helper()
	r, err := transform.Verify(t.Context(), m, result, transform.VerifyOptions{})
	ok(t, err)
	for _, p := range r.Problems {
		t.Error(p)
	}
	found := 0
	for _, x := range r.Tensors {
		if x.Problem != "" {
			t.Errorf("%s: %s", x.Name, x.Problem)
		}
		if x.Class == verify.Lossy {
			t.Errorf("%s is %s", x.Name, x.Class)
		}
		if x.Relation != nil && x.Relation.Source == "found" && strings.Contains(x.Name, "_proj.") {
			found++
		}
	}
	if found == 0 {
		t.Error("verify found no relation in the values")
	}
}

// alteredCodes changes one byte of a tensor of each role, each in another weight. verify must find the change without
// the manifest's checksums.
func alteredCodes(t *testing.T, m, result *weights.Model, q testmodel.Quantisation) {
	t.Helper()
	d, err := quant.Describe(m)
	ok(t, err)
	altered := map[string]quant.Role{} // tensors
	for i, w := range d.Weights {
		if i < len(w.Tensors) {
			altered[w.Tensors[i].Name] = w.Tensors[i].Role
		}
	}
	dir := filepath.Join(t.TempDir(), "altered")
	ok(t, os.CopyFS(dir, os.DirFS(result.Dir)))
	edit(t, dir, func(info weights.Info, data []byte) {
		if _, alter := altered[info.Name]; alter {
			data[0] ^= 1
		}
	})
	r, err := transform.Verify(t.Context(), m, open(t, dir), transform.VerifyOptions{})
	ok(t, err)
	for name, role := range altered {
		w, _ := d.WeightOf(name)
		if !slices.ContainsFunc(r.Tensors, func(x verify.Tensor) bool {
			of, _ := d.WeightOf(x.Name)
			return x.Problem != "" && of == w
		}) {
			t.Errorf("%s: verify misses a changed byte of %s, which holds %s", q.Name, name, role)
		}
	}
}

// TestExactChangesThatCodesRefuse: each change is an error with its reason, before anything is written.
func TestExactChangesThatCodesRefuse(t *testing.T) {
	exponents := func(of func(i int) int) []int {
		list := make([]int, 256)
		for i := range list {
			list[i] = of(i)
		}
		return list
	}
	swapped := exponents(func(i int) int { return i })
	swapped[0], swapped[255] = 255, 0
	order := &plan.Step{Pass: "reorder", Index: "layers.0.ffn", Data: swapped}
	flip := &plan.Step{Pass: "signs", Index: "layers.0.ffn", Data: []int{0, 1, 2, 3, 4, 5, 6, 7}}
	uneven := &plan.Step{Pass: "scale", Index: "layers.0.ffn", Data: exponents(func(i int) int { return i % 3 })}
	even := &plan.Step{Pass: "scale", Index: "layers.0.ffn", Data: exponents(func(int) int { return 3 })}
	lower := &plan.Step{Pass: "scale", Index: "layers.0.ffn", Data: exponents(func(int) int { return -1 })}
	far := &plan.Step{Pass: "scale", Index: "layers.0.ffn", Data: exponents(func(int) int { return 120 })}
	for _, c := range []struct {
		layout string
		step   *plan.Step
		reason string
	}{
		{"fp8 block", order, "128 outputs share a scale: an order must keep them together"},
		{"pack-quantized", order, "32 inputs share a scale: an order must keep them together"},
		{"awq", order, "64 inputs share a scale: an order must keep them together"},
		{"compressed nvfp4", order, "16 inputs share a scale: an order must keep them together"},
		{"compressed fp8 channel", uneven, "256 inputs share a scale: they must be multiplied by the same power of two"},
		{"gptq", uneven, "64 inputs share a scale: they must be multiplied by the same power of two"},
		{"compressed fp8 tensor", even, "the layer's inputs have a fixed scale"},
		{"compressed fp8 channel", far, "cannot be multiplied by 2^"},
		{"compressed nvfp4", even, "cannot be multiplied by 2^"},
		{"modelopt nvfp4", lower, "the layer's inputs have a fixed scale"},
		{"pack-quantized asymmetric", flip, "cannot change its sign"},
		{"gptq", flip, "cannot change its sign"},
		{"bitsandbytes nf4", order, "no exact change of its codes is possible: lowtoggle does not read its values"},
	} {
		i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == c.layout })
		m := open(t, testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{}))
		out := filepath.Join(t.TempDir(), "out")
		_, err := transform.Apply(t.Context(), m, planOf(t, m, c.step), out, transform.ApplyOptions{})
		wantError(t, err, c.reason)
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a file was written", c.layout)
		}
	}
}

// TestExactChangesBesideOtherCodes: new codes together with an exact change of them, for any number of workers.
func TestExactChangesBesideOtherCodes(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		passes := map[string]string{"compressed fp8 channel": "scales=3", "fp8 block": "zeros,round=1", "pack-quantized": "scales=1", "gptq": "round=1",
			"compressed mxfp4": "zeros", "compressed int8": "grid=2"}[q.Name]
		if passes == "" {
			continue
		}
		m := movableModel(t, q)
		p, err := transform.Plan(t.Context(), m, options(t, passes, 0))
		ok(t, err)
		steps := slices.Concat(moves(q.Name, rand.New(rand.NewPCG(2, 3))), p.Steps)
		if p.Predictions = nil; passes != "zeros" {
			steps = slices.DeleteFunc(steps, func(s *plan.Step) bool { return s.Pass == "signs" }) // rounding may give a code without a negative
		}
		p.Steps = steps
		var want map[string]string
		for _, workers := range []int{1, 3} {
			out := filepath.Join(t.TempDir(), "out")
			_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Workers: workers})
			ok(t, err)
			got := files(t, out)
			if want == nil {
				want = got
			}
			sameFiles(t, got, want)
			r, err := transform.Verify(t.Context(), m, open(t, out), transform.VerifyOptions{})
			ok(t, err)
			for _, x := range r.Tensors {
				if x.Problem != "" {
					t.Errorf("%s: %s: %s", q.Name, x.Name, x.Problem)
				}
				if x.SNR != nil && (math.IsNaN(*x.SNR) || *x.SNR < 5) {
					t.Errorf("%s: %s has %g dB", q.Name, x.Name, *x.SNR)
				}
			}
		}
	}
}

// TestGivenOrdersOfCodes: an order that all formats of a model can follow is planned, with a prediction. Other orders
// are errors. Passes that choose by themselves do not change the index, and give the reason.
func TestGivenOrdersOfCodes(t *testing.T) {
	i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == "pack-quantized" })
	m := movableModel(t, testmodel.Quantisations[i])
	path := filepath.Join(t.TempDir(), "given.json")
	give := func(order []int) (*plan.Plan, error) {
		js, err := json.Marshal(map[string][]int{"layers.0.ffn": order})
		ok(t, err)
		ok(t, os.WriteFile(path, js, 0o666))
		return transform.Plan(t.Context(), m, options(t, "reorder=given/"+path, 0))
	}
	random := rand.New(rand.NewPCG(4, 5))
	p, err := give(inUnits(256, 32, random))
	ok(t, err)
	wellMoved(t, m, open(t, applied(t, m, p)))
	if moved := slices.ContainsFunc(p.Quantised, func(c quant.Copied) bool { return c.Role == quant.Codes && c.Tensors == 14 }); moved || len(p.Steps) != 1 {
		t.Errorf("steps %v, copied %v", p.Steps, p.Quantised)
	}
	_, err = give(random.Perm(256))
	wantError(t, err, path, "index layers.0.ffn cannot take this order", "32 inputs share a scale")
	p, err = transform.Plan(t.Context(), m, options(t, "scale,reorder,signs", 0))
	ok(t, err)
	for _, name := range []string{"scale", "reorder", "signs"} {
		if !slices.ContainsFunc(p.Notes, func(n string) bool {
			return strings.HasPrefix(n, name+": ") && strings.Contains(n, "quantised weights share this index")
		}) {
			t.Errorf("no note about %s: %q", name, p.Notes)
		}
	}
}
