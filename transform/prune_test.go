package transform

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// damaged are steps that no planner would write, and what the error says of each.
type damaged struct {
	step *Step
	want string
}

// wantRefused carries out plans of single damaged steps, which must be errors that name the tensor.
func wantRefused(t *testing.T, m *weights.Model, in Inputs, tensor string, list []damaged) {
	t.Helper()
	for _, d := range list {
		d.step.Tensor = tensor
		c, err := newCompiler(t.Context(), m, layoutOf(t, m), []*Step{d.step})
		ok(t, err)
		c.inputs = in
		steps := []*Step{d.step}
		if d.step.Prune != nil {
			steps = append(steps, &Step{Pass: "compensate", Tensor: tensor, Compensate: &Feedback{Damp: 0.01}})
		}
		_, err = c.program(tensorOf(t, m, tensor), steps)
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
		list := []damaged{{&Step{}, "does not say what to zero"}, {&Step{Prune: &Prune{}}, "does not say what to zero"}}
		for _, c := range []struct {
			list []int
			of   int
			set  func(p *Prune, list []int)
			want string
		}{
			{nil, inputs, func(p *Prune, l []int) { p.Inputs = l }, "inputs: position "},
			{nil, outputs, func(p *Prune, l []int) { p.Outputs = l }, "outputs: position "},
		} {
			for _, bad := range [][]int{{-1}, {c.of}, {3, 4, 3}, {math.MaxInt}, {math.MinInt}} {
				s := &Step{Prune: &Prune{}}
				c.set(s.Prune, bad)
				list = append(list, damaged{s, c.want})
			}
			good := &Prune{}
			c.set(good, []int{c.of - 1})
			tensorsOf(m).under(t, m, feed(t, m), []*Step{
				{Pass: "prune", Tensor: name, Prune: good}, {Pass: "compensate", Tensor: name, Compensate: &Feedback{Damp: 0.01}},
			})
		}
		for _, d := range list {
			d.step.Pass = "prune"
		}
		wantRefused(t, m, feed(t, m), name, list)
	}
}

func TestDamagedCompensateIsRefused(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	list := []damaged{{&Step{Pass: "compensate"}, "its damping is not above 0 and up to 1"}}
	for _, damp := range []float64{0, -0.1, 1.5, math.NaN(), math.Inf(1)} {
		list = append(list, damaged{&Step{Pass: "compensate", Compensate: &Feedback{damp}}, "its damping is not above 0 and up to 1"})
	}
	wantRefused(t, m, feed(t, m), "lm_head.weight", list)
}

// What is pruned is zero, of all layers and in any order, and nothing else is that was not.
func TestPrunedLinesAreZeroAndNoOthers(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, weights.F32)
		in := feed(t, m)
		for _, passes := range []string{"prune=0.3,compensate", "scale,reorder,signs,prune=0.3,compensate"} {
			p := planWith(t, m, in, passes)
			c, err := newCompiler(t.Context(), m, layoutOf(t, m), p.Steps)
			ok(t, err)
			result := tensorsOf(m).under(t, m, in, p.Steps)
			steps := byTensor(p.Steps)
			linearOf(t, m, func(x weights.Tensor, outAxis int) {
				s := steps[x.Name][0].Prune
				if want := int(math.Round(0.3 * float64(x.Shape[1-outAxis]))); len(s.Inputs) != want {
					t.Errorf("%s: %d inputs are pruned, want %d", x.Name, len(s.Inputs), want)
				}
				prog, err := c.program(x, nil)
				ok(t, err)
				input, _ := prog.inputAxis()
				output, _ := prog.outputAxis()
				for n, row := range outputs(result[x.Name], outAxis) {
					for k, v := range row {
						pruned := slices.Contains(s.Inputs, at(input.gather, k, k)) || slices.Contains(s.Outputs, at(output.gather, n, n))
						if pruned != (v == 0) {
							t.Fatalf("%s %s: output %d, input %d: pruned %v, and the value is %g", passes, x.Name, n, k, pruned, v)
						}
					}
				}
			})
		}
	}
}

// Inputs that the others can stand in for go first: where each is there twice, half of them are free.
func TestPruneFindsTheInputsThatAreFree(t *testing.T) {
	m := tiny(t, "gpt2-tiny", weights.F32)
	in := feed(t, m)
	const name = "transformer.h.0.mlp.c_fc.weight"
	h := in.moments[name] // [40, 40], of 30 tokens
	for i := range h.Rows {
		for j := range h.Rows {
			h.Row(i)[j] = h.Row(i % 20)[j%20] // inputs 20 to 39 are those from 0 to 19 again
		}
	}
	steps := byTensor(planWith(t, m, in, "prune=0.5,compensate").Steps)[name]
	steps[0].Prune.Outputs = nil
	result := tensorsOf(m).under(t, m, in, steps)
	if share := lost(tensorOf(t, m, name), result[name], 1, h); share > 1e-3 {
		t.Errorf("%g of the output's power is lost", share)
	}
}

// The same inputs are pruned, whatever order and signs they have got.
func TestPruneChoosesBeforeAndAfterAnOrder(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		in := feed(t, m)
		want := byTensor(planWith(t, m, in, "prune=0.3,compensate").Steps)
		got := byTensor(planWith(t, m, in, "reorder,signs,prune=0.3,compensate").Steps)
		linearOf(t, m, func(x weights.Tensor, _ int) {
			if a, b := want[x.Name][0].Prune, got[x.Name][0].Prune; !slices.Equal(a.Inputs, b.Inputs) {
				t.Errorf("%s: inputs %v are pruned, and %v in another order", x.Name, a.Inputs, b.Inputs)
			}
		})
	}
}

func TestPruneSharesThatRoundToNothing(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	for x, result := range planned(t, m, in, "prune=0.001,compensate") {
		if !bytes.Equal(result.Data, tensorOf(t, m, x).Data) {
			t.Errorf("%s changed", x)
		}
	}
}
