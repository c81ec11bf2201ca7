package pass_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// behindNorm computes y = w·LN(x) + b for one layer of a model in real arithmetic. size is the sum of the magnitudes
// of each output's terms.
func behindNorm(t *testing.T, m *weights.Model, c *arch.Claim, x []float64) (y, size []float64) {
	t.Helper()
	gamma, beta := values(tensorOf(t, m, c.Norm.Weight)), values(tensorOf(t, m, c.Norm.Bias))
	var mean, variance float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	w, b := values(tensorOf(t, m, c.Name)), values(tensorOf(t, m, c.Bias))
	y, size = make([]float64, len(b)), make([]float64, len(b))
	for n := range y {
		y[n], size[n] = b[n], math.Abs(b[n])
		for k, v := range x {
			at := n*len(x) + k
			if c.OutAxis == 1 {
				at = k*len(y) + n
			}
			y[n] += w[at] * (gamma[k]*(v-mean)/math.Sqrt(variance) + beta[k])
			size[n] += math.Abs(w[at]) * (math.Abs(gamma[k]*(v-mean)/math.Sqrt(variance)) + math.Abs(beta[k]))
		}
	}
	return y, size
}

// sharpest is the largest error of rounding to a type, relative to the value.
var sharpest = map[weights.DType]float64{weights.F32: 0x1p-24, weights.BF16: 0x1p-8, weights.F16: 0x1p-11}

func TestFoldAndShiftKeepTheFunction(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for d, relative := range sharpest {
		for _, passes := range []string{"shift", "scale,shift", "scale,reorder,signs,shift=4"} {
			m := tiny(t, "gpt2-tiny", d)
			layout := layoutOf(t, m)
			p := makePlan(t, m, passes, 0)
			result := open(t, testplan.Applied(t, m, nil, p))
			c := testplan.Compiler(t, m, layout, nil, p.Steps)
			stream, _ := c.Symmetries().Matrix(layout.Claims["transformer.ln_f.weight"])
			x := make([]float64, layout.Dims["hidden"])
			for i := range x {
				x[i] = rng.NormFloat64() + 0.5
			}
			moved := make([]float64, len(x))
			for i := range x {
				moved[i] = x[stream.From(i)]
			}
			layers := 0
			for _, info := range m.Infos() {
				claim := layout.Claims[info.Name]
				if claim.Role != arch.Linear || claim.Norm == nil {
					continue
				}
				layers++
				want, size := behindNorm(t, m, claim, x)
				got, size2 := behindNorm(t, result, claim, moved)
				outputs, _ := c.Symmetries().Matrix(layout.Claims[claim.Bias])
				for i := range got {
					from := outputs.From(i)
					scale := math.Ldexp(1, outputs.Power(from))
					v := scale * want[from]
					if outputs.Flipped(from) {
						v = -v
					}
					if tolerance := relative * (size[from]*scale + size2[i]); math.Abs(got[i]-v) > tolerance {
						t.Fatalf("%s %s %s: output %d is %g, was %g", d, passes, claim.Name, i, got[i], v)
					}
				}
				if w := values(tensorOf(t, result, claim.Name)); mean(w) < 2*deviation(w) {
					t.Errorf("%s %s %s: not shifted", d, passes, claim.Name)
				}
			}
			if layers != 4 {
				t.Fatalf("%d layers behind norms", layers)
			}
		}
	}
}

func mean(v []float64) float64 {
	var s float64
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func deviation(v []float64) float64 {
	m := mean(v)
	var s float64
	for _, x := range v {
		s += (x - m) * (x - m)
	}
	return math.Sqrt(s / float64(len(v)))
}

func TestShiftBeforeSoftmaxMovesAllLogitsAlike(t *testing.T) {
	m := tiny(t, "llama-tiny", weights.F32)
	p := makePlan(t, m, "signs,shift=8", 0)
	if !p.DropIn {
		t.Error("not drop-in")
	}
	result := open(t, testplan.Applied(t, m, nil, p))
	c := testplan.Compiler(t, m, layoutOf(t, m), nil, p.Steps)
	_, cols := c.Symmetries().Matrix(layoutOf(t, m).Claims["lm_head.weight"])
	before, after := values(tensorOf(t, m, "lm_head.weight")), values(tensorOf(t, result, "lm_head.weight"))
	var first float64
	for i := range before {
		w := before[i]
		if cols.Flipped(i % 48) {
			w = -w
		}
		add := after[i] - w
		if i == 0 {
			first = add
		}
		if first == 0 || math.Abs(add-first) > 0x1p-20 {
			t.Fatalf("element %d was moved by %g, the first by %g", i, add, first)
		}
	}
}

func TestEpilogueIsStoredAndNotDropIn(t *testing.T) {
	for _, model := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, model, weights.F32)
		p := makePlan(t, m, "shift=4/epilogue", 0)
		if p.DropIn {
			t.Error("drop-in, with an epilogue")
		}
		out := testplan.Applied(t, m, nil, p)
		man, err := plan.ReadManifest(out)
		ok(t, err)
		if man.DropIn {
			t.Error("the manifest says drop-in")
		}
		result := open(t, out) // also checks the index
		var index struct {
			Map map[string]string `json:"weight_map"`
		}
		ok(t, json.Unmarshal([]byte(files(t, out)[weights.IndexName]), &index))
		extras := 0
		for _, s := range p.Steps {
			if !shifted(t, s).Epilogue {
				continue
			}
			extras++
			w, before := tensorOf(t, result, s.Tensor), values(tensorOf(t, m, s.Tensor))
			e := tensorOf(t, result, s.Tensor+weights.ShiftSuffix)
			outputs := w.Shape[layoutOf(t, m).Claims[s.Tensor].OutAxis]
			if e.DType != weights.F32 || len(e.Shape) != 1 || e.Shape[0] != outputs || index.Map[e.Name] != index.Map[w.Name] {
				t.Errorf("%s is %s%v in %s", e.Name, e.DType, e.Shape, index.Map[e.Name])
			}
			for i, v := range values(w) {
				if math.Abs(v-values(e)[0]-before[i]) > math.Abs(v)*0x1p-23 {
					t.Fatalf("%s: element %d is %g, was %g", s.Tensor, i, v, before[i])
				}
			}
			for _, v := range values(e) {
				if add := shifted(t, s).Add; v != add {
					t.Errorf("%s holds %g, not %g", e.Name, v, add)
				}
			}
		}
		if extras == 0 || result.Size() <= m.Size() {
			t.Error("no constant was added")
		}
	}
}

func TestShiftIsRefused(t *testing.T) {
	m := tiny(t, "gpt2-tiny", weights.BF16)
	one, two := 1.0, 2.0
	for want, s := range map[string]*plan.Step{
		"is not part of a known family":       {Tensor: "transformer.wte.weight", Data: pass.Shifted{Add: 1}},
		"is not a linear layer":               {Tensor: "transformer.wpe.weight", Data: pass.Shifted{Add: 1}},
		"a constant would change the outputs": {Tensor: "transformer.h.0.attn.c_proj.weight", Data: pass.Shifted{Add: 1}},
		"no LayerNorm with the weight":        {Tensor: "transformer.h.0.attn.c_attn.weight", Data: pass.Shifted{Scale: "transformer.h.1.ln_1.weight"}},
		"is not the bias of":                  {Tensor: "transformer.h.0.attn.c_attn.bias", Data: pass.Shifted{Bias: "transformer.h.0.ln_2.bias", Weight: "transformer.h.0.attn.c_attn.weight"}},
		"only a norm's weight or bias":        {Tensor: "transformer.h.0.attn.c_attn.bias", Data: pass.Shifted{Fill: &one}},
		"can be filled, with 0 or 1":          {Tensor: "transformer.h.0.ln_1.weight", Data: pass.Shifted{Fill: &two}},
		`ln_1.weight": has no data`:           {Tensor: "transformer.h.0.ln_1.weight"},
		"the constant is too large":           {Tensor: "transformer.h.0.attn.c_proj.weight", Data: pass.Shifted{Add: 1e300, Epilogue: true}},
		`the model has no tensor "nobody"`:    {Tensor: "nobody", Data: pass.Shifted{Add: 1}},
	} {
		s.Pass = "shift"
		p := testplan.Of(t, m, s)
		if want == "is not part of a known family" {
			p.Model.Family = ""
		}
		out := filepath.Join(t.TempDir(), "out")
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
		wantError(t, err, "invalid plan: shift", want)
		testplan.NothingAt(t, out)
	}
}

// TestShiftStaysInRange: a layer is not shifted if values would leave the type's range.
func TestShiftStaysInRange(t *testing.T) {
	dir := folder(t, config(t, "gpt2-tiny", ""), synth.Options{DType: weights.F16})
	edit(t, dir, func(info weights.Info, data []byte) {
		f := formatOf(info.DType)
		for i := range info.Len() {
			if strings.HasSuffix(info.Name, "h.0.mlp.c_fc.weight") { // with an rms near 5000, 8σ is near 2^15
				f.SetElem(data, i, f.FromValue(float32(5000*(1-2*(i%2)))))
			}
		}
		if strings.HasSuffix(info.Name, "h.0.mlp.c_fc.weight") {
			f.SetElem(data, 0, f.FromValue(60000))
		}
	})
	m := open(t, dir)
	p := makePlan(t, m, "shift", 0)
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "the layers behind transformer.h.0.ln_2.weight are not shifted: their output SNR would") {
		t.Errorf("notes: %s", notes)
	}
	result := open(t, testplan.Applied(t, m, nil, p))
	if name := "transformer.h.0.mlp.c_fc.weight"; !bytes.Equal(tensorOf(t, result, name).Data, tensorOf(t, m, name).Data) {
		t.Error("shifted")
	}
}

// TestKernelsAreNotShifted: kernels of convolutions are not shifted, because they are not matrices of inputs and
// outputs.
func TestKernelsAreNotShifted(t *testing.T) {
	for _, name := range []string{"vit-tiny", "whisper-tiny"} {
		m := open(t, folder(t, config(t, name, ""), synth.Options{}))
		p, count := makePlan(t, m, "shift=8/epilogue", 0), 0
		for _, s := range p.Steps {
			if shifted(t, s).Epilogue {
				count++
			}
			if n := len(tensorOf(t, m, s.Tensor).Shape); n > 2 {
				t.Errorf("%s: %s has %d dimensions and is shifted", name, s.Tensor, n)
			}
		}
		if count == 0 || !strings.Contains(strings.Join(p.Notes, "\n"), "is not a matrix") {
			t.Errorf("%s: %d layers are shifted; notes %q", name, count, p.Notes)
		}
		testplan.Applied(t, m, nil, p)
	}
}
