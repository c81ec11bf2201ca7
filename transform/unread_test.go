package transform_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// unread returns the outputs that the planner zeroes for pruned inputs.
func unread(t tb, m *weights.Model, pruned map[string][]int) map[string][]int {
	t.Helper()
	var steps []*plan.Step
	for _, info := range m.Infos() {
		if list := pruned[info.Name]; len(list) > 0 {
			steps = append(steps, pass.Prune.TensorStep(info.Name, pass.Pruned{Inputs: list}))
		}
	}
	steps, err := pass.Prune.Complete(&pass.Model{Weights: quant.Group(m, nil), Layout: layoutOf(t, m)}, steps)
	ok(t, err)
	all := map[string][]int{}
	for _, s := range steps {
		if _, twice := all[s.Tensor]; twice {
			t.Fatalf("%s has two steps", s.Tensor)
		}
		d := s.Data.(pass.Pruned)
		all[s.Tensor] = d.Outputs
		if !slices.Equal(d.Inputs, pruned[s.Tensor]) {
			t.Fatalf("%s: the inputs became %v", s.Tensor, d.Inputs)
		}
	}
	return all
}

// drawPruned draws inputs of the layers inside a block, often all inputs that one output feeds.
func drawPruned(t *rapid.T, l *arch.Layout) map[string][]int {
	pruned := map[string][]int{}
	for _, ix := range l.Indices {
		if ix.Name == "residual" {
			continue
		}
		for _, u := range ix.Uses {
			claim := l.Claims[u.Tensor]
			if claim.Role != arch.Linear || u.Axis == claim.OutAxis {
				continue
			}
			for _, positions := range claim.Axes[u.Axis].Positions(ix.Name) {
				if len(positions) < claim.Axes[u.Axis].Len() && rapid.IntRange(0, 3).Draw(t, "prune "+ix.Name) == 0 {
					pruned[u.Tensor] = append(pruned[u.Tensor], positions...)
				}
			}
		}
	}
	for name, list := range pruned {
		slices.Sort(list)
		list = slices.Compact(list)
		drop := rapid.IntRange(0, len(list)-1).Draw(t, "but")
		pruned[name] = slices.Delete(list, drop, drop+1)
	}
	return pruned
}

// TestUnreadOutputsAreThoseThatDoNotMatter: changing the weights of an unread output does not change the model's
// outputs. Changing any other output does, except in models with experts, which may all be skipped.
func TestUnreadOutputsAreThoseThatDoNotMatter(t *testing.T) {
	var subjects []subject
	var models []*weights.Model
	for _, f := range arch.Families() {
		s := subjectsOf(t, f.Name)[0]
		subjects, models = append(subjects, s), append(models, s.model(t))
	}
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(models)-1).Draw(t, "model")
		m, s, layout := models[i], subjects[i], layoutOf(t, models[i])
		pruned := drawPruned(t, layout)
		zeroed := unread(t, m, pruned)
		x := rapid.SampledFrom(matrices(t, m)).Draw(t, "layer")
		outAxis := layout.Claims[x.Name].OutAxis
		out := rapid.IntRange(0, x.Shape[outAxis]-1).Draw(t, "output")
		if list := zeroed[x.Name]; len(list) > 0 && rapid.Bool().Draw(t, "unread") {
			out = rapid.SampledFrom(list).Draw(t, "unread output")
		}
		in := 0
		for slices.Contains(pruned[x.Name], in) {
			in++
		}
		withPruned := func(change bool) [][]float64 {
			return s.outputs(t, rewritten(t, m, func(y weights.Tensor) []byte {
				data, set := bytes.Clone(y.Data), formatOf(y.DType)
				at := func(out, in int) int {
					if layout.Claims[y.Name].OutAxis == 1 {
						out, in = in, out
					}
					return out*y.Shape[1] + in
				}
				for _, in := range pruned[y.Name] {
					for out := range y.Shape[layout.Claims[y.Name].OutAxis] {
						set.SetElem(data, at(out, in), 0)
					}
				}
				if change && y.Name == x.Name {
					set.SetElem(data, at(out, in), set.FromValue(1))
				}
				return data
			}))
		}
		matters, is := apart(withPruned(false), withPruned(true)) != 0, slices.Contains(zeroed[x.Name], out)
		if is && matters || !is && !matters && (s.family == "llama" || s.family == "gpt2") {
			t.Fatalf("%s: %s: output %d: matters %v, is zeroed %v; pruned %v", s.name, x.Name, out, matters, is, pruned)
		}
		if is {
			found++
		}
	})
	if found == 0 || found < 10 && !testing.Short() {
		t.Errorf("only %d outputs were unread", found)
	}
}

// matrices returns the layers that are matrices.
func matrices(t tb, m *weights.Model) (all []weights.Tensor) {
	t.Helper()
	layout := layoutOf(t, m)
	ok(t, m.Each(func(x weights.Tensor) error {
		if layout.IsLinear(x.Info) && len(x.Shape) == 2 {
			all = append(all, x)
		}
		return nil
	}))
	return all
}

// TestTheResidualStreamIsAlwaysRead: norms read the residual stream, so its outputs stay even if all inputs of all
// layers are pruned.
func TestTheResidualStreamIsAlwaysRead(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		layout, pruned := layoutOf(t, m), map[string][]int{}
		testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) { pruned[x.Name] = order.Identity(x.Shape[1-outAxis]) })
		zeroed := unread(t, m, pruned)
		testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
			names := layout.Claims[x.Name].Axes[outAxis].Indices()
			want := 0
			if len(names) > 0 && strings.HasPrefix(names[0], "layers.") { // inside a block
				want = x.Shape[outAxis]
			}
			if got := len(zeroed[x.Name]); got != want {
				t.Errorf("%s: %s: %d outputs are zeroed, want %d", name, x.Name, got, want)
			}
		})
	}
}

// TestOutputsThatUnclaimedTensorsMayReadStay: an unclaimed tensor may read the outputs of its module.
func TestOutputsThatUnclaimedTensorsMayReadStay(t *testing.T) {
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
	alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
		const name = "model.layers.0.mlp.probe.weight"
		data[name] = bytes.Repeat([]byte{1, 63}, 4*100)
		return append(infos, weights.Info{Name: name, DType: weights.BF16, Shape: []int{4, 100}})
	})
	zeroed := unread(t, open(t, dir), map[string][]int{
		"model.layers.0.mlp.down_proj.weight": {3}, "model.layers.1.mlp.down_proj.weight": {3},
	})
	for name, want := range map[string][]int{"model.layers.0.mlp.up_proj.weight": nil, "model.layers.1.mlp.up_proj.weight": {3}} {
		if got := zeroed[name]; !slices.Equal(got, want) {
			t.Errorf("%s: outputs %v are zeroed, want %v", name, got, want)
		}
	}
}

// TestZeroingUnreadOutputsKeepsTheFunction: zeroing unread outputs does not change a single bit of the losses.
func TestZeroingUnreadOutputsKeepsTheFunction(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		in := testmodel.HessiansOf(t, m)
		p := testplan.Weighed(t, m, in, "scale,reorder,signs,prune=0.4,grid=16,compensate")
		_, with := testmodel.Forward(t, m, testplan.Under(t, testmodel.TensorsOf(m), m, in, p.Steps), 3)
		zeroed := 0
		for _, s := range p.Steps {
			if d, is := s.Data.(pass.Pruned); is {
				zeroed += len(d.Outputs)
				s.Data = pass.Pruned{Inputs: d.Inputs}
			}
		}
		if zeroed < 50 {
			t.Errorf("%s: %d outputs are zeroed", name, zeroed)
		}
		_, without := testmodel.Forward(t, m, testplan.Under(t, testmodel.TensorsOf(m), m, in, p.Steps), 3)
		for i := range with.Nats {
			if !slices.Equal(with.Nats[i], without.Nats[i]) {
				t.Errorf("%s: the losses of sequence %d are %v, and %v with those outputs", name, i, with.Nats[i], without.Nats[i])
			}
		}
	}
}
