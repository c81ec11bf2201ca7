package pass_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// damaged is a step that no planner writes, with a part of the error for it.
type damaged struct {
	step *plan.Step
	want string
}

// wantRefused compiles damaged steps one by one. Each must be an error that names the tensor.
func wantRefused(t *testing.T, m *weights.Model, h program.Hessians, tensor string, list []damaged) {
	t.Helper()
	for _, d := range list {
		d.step.Tensor = tensor
		c := testplan.Compiler(t, m, layoutOf(t, m), h, []*plan.Step{d.step})
		steps := []*plan.Step{d.step}
		if d.step.Pass == "prune" {
			steps = append(steps, &plan.Step{Pass: "compensate", Tensor: tensor, Data: pass.Damping{Damp: 0.01}})
		}
		_, err := c.Program(t.Context(), testplan.Weight(tensorOf(t, m, tensor)), steps)
		wantError(t, err, "invalid plan", tensor, d.want)
	}
}

func TestDamagedPruneIsRefused(t *testing.T) {
	for model, name := range map[string]string{"llama-tiny": "model.layers.0.mlp.up_proj.weight", "gpt2-tiny": "transformer.h.0.mlp.c_fc.weight"} {
		m := tiny(t, model, 0)
		inputs, outputs := 48, 100
		if model == "gpt2-tiny" {
			inputs, outputs = 40, 160
		}
		list := []damaged{{&plan.Step{}, "has no data"}, {&plan.Step{Data: pass.Pruned{}}, "names no inputs and no outputs to zero"}}
		for _, c := range []struct {
			list []int
			of   int
			set  func(p *pass.Pruned, list []int)
			want string
		}{
			{nil, inputs, func(p *pass.Pruned, l []int) { p.Inputs = l }, "inputs: position "},
			{nil, outputs, func(p *pass.Pruned, l []int) { p.Outputs = l }, "outputs: position "},
		} {
			for _, bad := range [][]int{{-1}, {c.of}, {3, 4, 3}, {math.MaxInt}, {math.MinInt}} {
				var d pass.Pruned
				c.set(&d, bad)
				list = append(list, damaged{&plan.Step{Data: d}, c.want})
			}
			var good pass.Pruned
			c.set(&good, []int{c.of - 1})
			testplan.Under(t, testmodel.TensorsOf(m), m, testmodel.HessiansOf(t, m), []*plan.Step{
				{Pass: "prune", Tensor: name, Data: good}, {Pass: "compensate", Tensor: name, Data: pass.Damping{Damp: 0.01}},
			})
		}
		for _, d := range list {
			d.step.Pass = "prune"
		}
		wantRefused(t, m, testmodel.HessiansOf(t, m), name, list)
	}
}

func TestDamagedCompensateIsRefused(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	list := []damaged{{&plan.Step{Pass: "compensate"}, "has no data"}}
	for _, damp := range []float64{0, -0.1, 1.5, math.NaN(), math.Inf(1)} {
		list = append(list, damaged{&plan.Step{Pass: "compensate", Data: pass.Damping{Damp: damp}}, "the damping must be above 0 and at most 1"})
	}
	wantRefused(t, m, testmodel.HessiansOf(t, m), "lm_head.weight", list)
}

// TestPrunedLinesAreZeroAndNoOthers: pruned inputs and outputs are zero in all layers, for any order. All other
// values are not zero.
func TestPrunedLinesAreZeroAndNoOthers(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, weights.F32)
		in := testmodel.HessiansOf(t, m)
		for _, passes := range []string{"prune=0.3,compensate", "scale,reorder,signs,prune=0.3,compensate"} {
			p := testplan.Weighed(t, m, in, passes)
			c := testplan.Compiler(t, m, layoutOf(t, m), nil, p.Steps)
			result := testplan.Under(t, testmodel.TensorsOf(m), m, in, p.Steps)
			steps := testplan.ByTensor(p.Steps)
			testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
				s := steps[x.Name][0].Data.(pass.Pruned)
				if want := int(math.Round(0.3 * float64(x.Shape[1-outAxis]))); len(s.Inputs) != want {
					t.Errorf("%s: %d inputs are pruned, want %d", x.Name, len(s.Inputs), want)
				}
				prog, err := c.Program(t.Context(), testplan.Weight(x), nil)
				ok(t, err)
				input, _ := prog.InputAxis()
				output, _ := prog.OutputAxis()
				for n, row := range testmodel.Outputs(result[x.Name], outAxis) {
					for k, v := range row {
						pruned := slices.Contains(s.Inputs, input.From(k)) || slices.Contains(s.Outputs, output.From(n))
						if pruned != (v == 0) {
							t.Fatalf("%s %s: output %d, input %d: pruned %v, and the value is %g", passes, x.Name, n, k, pruned, v)
						}
					}
				}
			})
		}
	}
}

// TestPruneFindsTheInputsThatAreFree: inputs that other inputs predict are pruned first. If every input has a copy,
// pruning half of them loses nothing.
func TestPruneFindsTheInputsThatAreFree(t *testing.T) {
	m := tiny(t, "gpt2-tiny", weights.F32)
	in := testmodel.HessiansOf(t, m)
	const name = "transformer.h.0.mlp.c_fc.weight"
	h := in.Fitting[name] // [40, 40], of 30 tokens
	for i := range h.Rows {
		for j := range h.Rows {
			h.Row(i)[j] = h.Row(i % 20)[j%20] // inputs 20 to 39 are copies of inputs 0 to 19
		}
	}
	steps := testplan.ByTensor(testplan.Weighed(t, m, in, "prune=0.5,compensate").Steps)[name]
	steps[0].Data = pass.Pruned{Inputs: steps[0].Data.(pass.Pruned).Inputs}
	result := testplan.Under(t, testmodel.TensorsOf(m), m, in, steps)
	if share := testmodel.Lost(tensorOf(t, m, name), result[name], 1, h); share > 1e-3 {
		t.Errorf("%g of the output's power is lost", share)
	}
}

// TestPruneChoosesBeforeAndAfterAnOrder: order and signs do not affect which inputs are pruned.
func TestPruneChoosesBeforeAndAfterAnOrder(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		in := testmodel.HessiansOf(t, m)
		want := testplan.ByTensor(testplan.Weighed(t, m, in, "prune=0.3,compensate").Steps)
		got := testplan.ByTensor(testplan.Weighed(t, m, in, "reorder,signs,prune=0.3,compensate").Steps)
		testmodel.EachLinear(t, m, func(x weights.Tensor, _ int) {
			if a, b := want[x.Name][0].Data.(pass.Pruned), got[x.Name][0].Data.(pass.Pruned); !slices.Equal(a.Inputs, b.Inputs) {
				t.Errorf("%s: inputs %v are pruned, and %v in another order", x.Name, a.Inputs, b.Inputs)
			}
		})
	}
}

func TestPruneSharesThatRoundToNothing(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	for x, result := range testplan.Planned(t, m, in, "prune=0.001,compensate") {
		if !bytes.Equal(result.Data, tensorOf(t, m, x).Data) {
			t.Errorf("%s changed", x)
		}
	}
}

// TestPruneFollowsItsLambda: a larger lambda prunes the same inputs and more, never all of them, and none without feedback. An input
// is worth its own weights, and those of other layers that become zero with it.
func TestPruneFollowsItsLambda(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		model := modelOf(t, m, "prune,trellis,compensate")
		model.Hessians = testmodel.HessiansOf(t, m)
		some := 0
		for _, c := range model.Linears()[:3] {
			w, _ := model.Weights.Weight(c.Name)
			l, err := pass.NewLayer(t.Context(), model.Context, model.Compiler, w, nil)
			ok(t, err)
			inputs := w.Shape[1-c.OutAxis]
			tuned := func(damp, freed float64) func(float64) []int {
				l.Freed = freed
				at, err := pass.Prune.Tuned(t.Context(), l, damp)
				ok(t, err)
				return func(lambda float64) []int {
					data := at(lambda)
					if data == nil {
						return nil
					}
					if len(data.(pass.Pruned).Inputs) == 0 || data.(pass.Pruned).Outputs != nil {
						t.Fatalf("%s: a step with the data %+v", w.Name, data)
					}
					return data.(pass.Pruned).Inputs
				}
			}
			outputs := float64(l.Outputs())
			none, own, twice := tuned(0, 0), tuned(0.01, 0), tuned(0.01, outputs)
			var before []int
			for e := -20.0; e < 6; e += 0.25 {
				lambda := math.Exp2(e)
				list := own(lambda)
				if len(list) == 0 && len(before) > 0 { // it would prune all inputs
					break
				}
				if none(lambda) != nil || len(list) >= inputs || !slices.Equal(list[:min(len(list), len(before))], before) {
					t.Fatalf("%s: a lambda of %g prunes %v of %d inputs, a smaller one %v", w.Name, lambda, list, inputs, before)
				}
				if more := twice(lambda / 2); !slices.Equal(more, list) {
					t.Errorf("%s: half the lambda for twice the weights prunes %v, want %v", w.Name, more, list)
				}
				before = list
			}
			some += len(before)
		}
		if some == 0 {
			t.Errorf("%s: nothing is pruned", name)
		}
	}
}

// TestOutputsThatNobodyReads: if an input of the only reader is pruned, the outputs that write it become zero, and no others.
func TestOutputsThatNobodyReads(t *testing.T) {
	m := open(t, folder(t, config(t, "llama-tiny", testplan.Narrow), synth.Options{}))
	model := modelOf(t, m, "prune")
	const reader = "model.layers.0.mlp.down_proj.weight"
	for _, inputs := range [][]int{{3}, {5, 0}, {7, 2, 30, 1}} {
		steps, err := pass.Prune.Complete(model, []*plan.Step{pass.Prune.TensorStep(reader, pass.Pruned{Inputs: inputs})})
		ok(t, err)
		want := slices.Sorted(slices.Values(inputs))
		outputs := map[string][]int{}
		for _, s := range steps {
			outputs[s.Tensor] = s.Data.(pass.Pruned).Outputs
		}
		for _, writer := range []string{"gate_proj", "up_proj"} {
			if got := outputs["model.layers.0.mlp."+writer+".weight"]; !slices.Equal(got, want) {
				t.Errorf("outputs %v of %s become zero, want %v", got, writer, want)
			}
		}
		if len(steps) != 3 || !slices.Equal(steps[0].Data.(pass.Pruned).Inputs, inputs) || outputs[reader] != nil {
			t.Errorf("%d steps, the first is %+v", len(steps), steps[0].Data)
		}
	}
	w, _ := model.Weights.Weight("model.layers.0.mlp.up_proj.weight")
	if got, want := model.Freed(reader), float64(2*w.Cols); got != want {
		t.Errorf("an input of %s frees %g weights, want %g", reader, got, want)
	}
	for _, name := range []string{w.Name, "model.norm.weight", "elsewhere"} {
		if got := model.Freed(name); got != 0 {
			t.Errorf("an input of %s frees %g weights", name, got)
		}
	}
}
