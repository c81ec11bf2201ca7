package transform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// fed is what a model's layers are fed with by a forward pass over random tokens.
type fed struct {
	key           string
	moments, held observed
	asked         func(tensor string) error // may be nil
}

func (f *fed) Key() string { return f.key }

func (f *fed) Moments(_ context.Context, tensor string) (sgemm.Matrix, error) {
	if f.asked != nil {
		if err := f.asked(tensor); err != nil {
			return sgemm.Matrix{}, err
		}
	}
	return f.moments.of(tensor)
}

func (f *fed) Has(string) bool { return true }

func (f *fed) Held(_ context.Context, tensor string) (sgemm.Matrix, error) { return f.held.of(tensor) }

// observed are second moments by layer, of one batch.
type observed map[string]sgemm.Matrix

// Input implements [forward.Observer].
func (o observed) Input(names []string, x sgemm.Matrix) error {
	h := sgemm.Dense(x.Cols, x.Cols, nil)
	if err := sgemm.Mul(context.Background(), h, x, x, sgemm.Op{TransA: true}); err != nil {
		return err
	}
	for i := range h.Data {
		h.Data[i] /= float32(x.Rows)
	}
	for _, name := range names {
		if _, twice := o[name]; twice {
			return fmt.Errorf("%s: more than one batch", name)
		}
		o[name] = h
	}
	return nil
}

// of is a copy: who asked may change it.
func (o observed) of(tensor string) (sgemm.Matrix, error) {
	h, known := o[tensor]
	if !known {
		return h, errors.New("the forward pass has no such layer")
	}
	return sgemm.Dense(h.Rows, h.Cols, append([]float32{}, h.Data...)), nil
}

// sequences of random tokens: fewer in all than most layers have inputs, so that inputs go together.
func sequences(t tb, m *weights.Model, seed uint64) [][]int32 {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	all := make([][]int32, 2)
	for i := range all {
		for range 15 {
			all[i] = append(all[i], int32(rng.IntN(layoutOf(t, m).Dims["vocab"])))
		}
	}
	return all
}

// run feeds a model of some weights with tokens, and returns what its layers got and the losses.
func run(t tb, m *weights.Model, w forward.Weights, seed uint64) (observed, *forward.Scores) {
	t.Helper()
	d, err := forward.New(m, layoutOf(t, m))
	ok(t, err)
	seen := observed{}
	scores, err := d.Run(context.Background(), w, sequences(t, m, seed), seen)
	ok(t, err)
	return seen, scores
}

func feed(t tb, m *weights.Model) *fed {
	t.Helper()
	f := &fed{key: "these tokens"}
	f.moments, _ = run(t, m, forward.Stored(m), 1)
	f.held, _ = run(t, m, forward.Stored(m), 2)
	return f
}

// planWith makes a plan that weighs errors by inputs.
func planWith(t tb, m *weights.Model, in Inputs, passes string) *Plan {
	t.Helper()
	o := options(t, passes, 0)
	o.Inputs = in
	p, err := Make(context.Background(), m, o)
	ok(t, err)
	return p
}

// appliedWith carries a plan out with the inputs that it was made with.
func appliedWith(t *testing.T, m *weights.Model, in Inputs, p *Plan) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{Inputs: in})
	ok(t, err)
	return out
}

// tensors of a model by name.
type tensors map[string]weights.Tensor

func tensorsOf(m *weights.Model) tensors {
	all := tensors{}
	for _, info := range m.Infos() {
		all[info.Name], _ = m.Tensor(info.Name)
	}
	return all
}

// under is what steps make of tensors, without a folder; m says how they hang together.
func (all tensors) under(t tb, m *weights.Model, in Inputs, steps []*Step) tensors {
	t.Helper()
	c, err := newCompiler(context.Background(), m, layoutOf(t, m), steps)
	ok(t, err)
	c.inputs = in
	result, of := tensors{}, byTensor(steps)
	for name, x := range all {
		prog, err := c.program(x, of[name])
		ok(t, err)
		ok(t, prog.prepare(context.Background(), 2))
		out := x
		out.Data = make([]byte, len(x.Data))
		prog.run(out.Data, 0, prog.rows)
		result[name] = out
	}
	return result
}

// planned is what a plan for the passes makes of a model.
func planned(t tb, m *weights.Model, in Inputs, passes string) tensors {
	t.Helper()
	return tensorsOf(m).under(t, m, in, planWith(t, m, in, passes).Steps)
}

// Tensor makes tensors the weights of a forward pass.
func (all tensors) Tensor(_ context.Context, name string) ([]float32, error) {
	x := all[name]
	v := make([]float32, x.Len())
	formatOf(x.DType).Decode(v, x.Data)
	return v, nil
}

// linearOf calls fn with every layer of a model.
func linearOf(t tb, m *weights.Model, fn func(x weights.Tensor, outAxis int)) {
	t.Helper()
	layout := layoutOf(t, m)
	for _, info := range m.Infos() {
		if layout.IsLinear(info) {
			fn(tensorOf(t, m, info.Name), layout.Claims[info.Name].OutAxis)
		}
	}
}

// outputs are a stored layer's values, each row an output's.
func outputs(x weights.Tensor, outAxis int) [][]float64 {
	rows, cols := x.Matrix()
	v := values(x)
	if outAxis == 0 {
		rows, cols = cols, rows
	}
	w := make([][]float64, cols)
	for n := range w {
		for k := range rows {
			if outAxis == 0 {
				w[n] = append(w[n], v[n*rows+k])
			} else {
				w[n] = append(w[n], v[k*cols+n])
			}
		}
	}
	return w
}

// power is tr(w·h·wᵀ).
func power(w [][]float64, h sgemm.Matrix) (sum float64) {
	for _, row := range w {
		for i, a := range row {
			for j, v := range h.Row(i) {
				sum += a * float64(v) * row[j]
			}
		}
	}
	return sum
}

// lost is the share of the power of a layer's outputs that has become error.
func lost(before, after weights.Tensor, outAxis int, h sgemm.Matrix) float64 {
	w, e := outputs(before, outAxis), outputs(after, outAxis)
	for n, row := range e {
		for k := range row {
			row[k] -= w[n][k]
		}
	}
	return power(e, h) / power(w, h)
}

// Whatever order, signs and scales the columns got: a plan's moments are those of the inputs that the
// converted model's own forward pass has.
func TestMomentsAreThoseOfTheResult(t *testing.T) {
	var models []*weights.Model
	var inputs []*fed
	for _, c := range [][]byte{config(t, "llama-tiny", `{"attention_bias": true, "mlp_bias": true}`), config(t, "gpt2-tiny", "")} {
		m := open(t, folder(t, c, synth.Options{Seed: 5}))
		models, inputs = append(models, m), append(inputs, feed(t, m))
	}
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(models)-1).Draw(t, "model")
		m, in, layout := models[i], inputs[i], layoutOf(t, models[i])
		steps := stepsOf(layout, drawSymmetries(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), layout, symmetryNames))
		seen, _ := run(t, m, tensorsOf(m).under(t, m, nil, steps), 1)
		c, err := newCompiler(context.Background(), m, layout, steps)
		ok(t, err)
		linearOf(t, m, func(x weights.Tensor, _ int) {
			prog, err := c.program(x, nil)
			ok(t, err)
			got, err := prog.moments(context.Background(), in.Moments)
			ok(t, err)
			near(t, x.Name, got, seen[x.Name])
		})
	})
}

// near holds moments of inputs against each other, each element in relation to its two inputs.
func near(t tb, name string, got, want sgemm.Matrix) {
	t.Helper()
	for i := range want.Rows {
		for j, v := range want.Row(i) {
			size := math.Sqrt(float64(want.Row(i)[i]) * float64(want.Row(j)[j]))
			if off := math.Abs(float64(got.Row(i)[j]) - float64(v)); off > 1e-3*size+1e-20 {
				t.Fatalf("%s: H[%d, %d] is %g, its inputs have %g", name, i, j, got.Row(i)[j], v)
			}
		}
	}
}

func TestMomentsThatDoNotFit(t *testing.T) {
	m := tiny(t, "gpt2-tiny", 0)
	in := feed(t, m)
	const name = "transformer.h.1.mlp.c_proj.weight"
	p := planWith(t, m, in, "round=3,compensate")
	in.moments[name] = in.moments["transformer.h.1.mlp.c_fc.weight"]
	out := filepath.Join(t.TempDir(), "out")
	_, err := Apply(t.Context(), m, p, out, ApplyOptions{Inputs: in})
	wantError(t, err, name, "its layer has 160 inputs, their moments are 40×40")
	delete(in.moments, name)
	_, err = Apply(t.Context(), m, p, filepath.Join(t.TempDir(), "out"), ApplyOptions{Inputs: in})
	wantError(t, err, name, "its layer's inputs: the forward pass has no such layer")
}

func TestPlacesOfPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "positions")
		a := axisMap{}
		if rapid.Bool().Draw(t, "moved") {
			a.gather = rapid.Permutation(identity(n)).Draw(t, "order")
		}
		list := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID).Draw(t, "list")
		places, err := a.places(n, list)
		ok(t, err)
		for i, place := range places {
			if at(a.gather, place, place) != list[i] {
				t.Fatalf("%d is at %d in %v", list[i], place, a.gather)
			}
		}
		bad := rapid.SampledFrom([]int{-1, n, 1 << 40, append(list, -7)[0]}).Draw(t, "bad")
		_, err = a.places(n, append(list[:len(list):len(list)], bad))
		wantError(t, err, fmt.Sprintf("position %d is not one of %d, or is named twice", bad, n))
	})
}

func TestInputsAreNeededAndOnlyTheirsAreTaken(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	for _, passes := range []string{"compensate,round=3", "prune=0.2,compensate"} {
		_, err := Make(t.Context(), m, options(t, passes, 0))
		wantError(t, err, "weighs errors by what layers are fed with", "--tokens FILE")
	}
	other := *in
	other.key = "other tokens"
	for _, passes := range []string{"compensate,round=3", "trellis=0.01"} {
		with := planWith(t, m, in, passes)
		if with.Request.Inputs != in.key {
			t.Errorf("%s: the plan says that its inputs are %q", passes, with.Request.Inputs)
		}
		out := filepath.Join(t.TempDir(), "out")
		_, err := Apply(t.Context(), m, with, out, ApplyOptions{})
		wantError(t, err, "what layers are fed with", "--tokens FILE")
		_, err = Apply(t.Context(), m, with, out, ApplyOptions{Inputs: &other})
		wantError(t, err, "other tokens than these", "--tokens FILE")
		nothingAt(t, out)
	}
	// What does not depend on them takes none.
	if p := planWith(t, m, in, "reorder,grid=8,round=3"); p.Request.Inputs != "" {
		t.Errorf("a plan of grid and round says that its inputs are %q", p.Request.Inputs)
	}
	// The same plan gives the same bytes: one without inputs takes none.
	without := makePlan(t, m, "trellis=0.01", 0)
	out := filepath.Join(t.TempDir(), "out")
	_, err := Apply(t.Context(), m, without, out, ApplyOptions{Inputs: in})
	wantError(t, err, "the plan was made without tokens")
	nothingAt(t, out)
	// Nor does a step that lacks the inputs' key.
	p := planOf(t, m, &Step{Pass: "compensate", Tensor: "lm_head.weight", Compensate: &Feedback{Damp: 0.01}})
	_, err = Apply(t.Context(), m, p, out, ApplyOptions{})
	wantError(t, err, "lm_head.weight", "compensate weighs errors by the layer's inputs", "--tokens FILE")
	if !errors.Is(err, ErrPlan) {
		t.Errorf("error %v is not of class ErrPlan", err)
	}
	nothingAt(t, out)
}
