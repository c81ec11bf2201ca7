package transform_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// sameOutputs is the largest difference between equal outputs, relative to the largest output. Sums have another
// order.
const sameOutputs = 1e-9

// TestCatalogue proves every family: it runs the family's models before and after all allowed changes. Package
// reference computes the outputs without using the catalogue.
func TestCatalogue(t *testing.T) {
	t.Cleanup(seldomCollected()) // after the parallel tests
	for _, f := range arch.Families() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			tried, ran := map[string]bool{}, 0
			subjects := subjectsOf(t, f.Name)
			for _, s := range subjects {
				t.Run(s.name, func(t *testing.T) {
					if testing.Short() && !s.first {
						return
					}
					ran++
					m := s.coarse(t)
					s.provePasses(t, m, tried)
					if s.first {
						m = s.model(t)
					}
					s.proveSymmetries(t, m, tried)
				})
			}
			if ran < len(subjects) || t.Failed() {
				return
			}
			for _, kind := range declared(t, f.Name) {
				if !tried[kind] {
					t.Errorf("%s is allowed but not tested: add a variant or a tiny config", kind)
				}
			}
		})
	}
}

// seldomCollected makes garbage collection rarer. It is for tests of many tiny models, whose small heap is all
// garbage.
func seldomCollected() (end func()) {
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

// declared lists the symmetries with conditions in a family's file, and the passes that use them. signs is left out,
// because it saves nothing in heads as small as these.
func declared(t *testing.T, family string) (all []string) {
	f, layerNorms := familyFile(t, family), map[any]bool{}
	for _, ix := range f.list("indices") {
		for what, pass := range map[string]string{"permute": "reorder", "sign": "", "scale": "scale"} {
			if ix[what] == nil {
				continue
			}
			all = append(all, what+" "+ix["name"].(string))
			if pass != "" {
				all = append(all, "the pass "+pass)
			}
		}
	}
	for _, norm := range f.list("norms") {
		layerNorms[norm["name"]] = norm["kind"] == "layernorm"
	}
	for _, tensor := range f.list("tensors") {
		if layerNorms[tensor["norm"]] && tensor["optional"] != true {
			all = append(all, "the pass shift")
		}
	}
	return all
}

// symmetryNames are the fields of an index in a family's file.
var symmetryNames = []string{"permute", "sign", "scale"}

// proveSymmetries applies random symmetries to every index, one sort alone and all together, and undoes them.
func (s subject) proveSymmetries(t *testing.T, m *weights.Model, tried map[string]bool) {
	l := layoutOf(t, m)
	if len(l.Unclaimed) > 0 {
		t.Fatalf("unclaimed tensors: %v", l.Unclaimed)
	}
	want := s.outputs(t, m)
	for i, sorts := range [][]string{symmetryNames, {"permute"}, {"sign"}, {"scale"}}[:s.some(1, 4)] {
		all := drawSymmetries(rand.New(rand.NewPCG(uint64(i), 1)), l, sorts)
		all.note(l, tried)
		there := s.convert(t, m, planOf(t, m, stepsOf(l, all)...))
		if d := apart(want, s.outputs(t, there)); !(d <= sameOutputs) {
			t.Errorf("%v, draw %d: the outputs are %.2g apart\n%s", sorts, i, d, s.culprits(t, m, l, all, want))
			continue
		}
		if !s.sameCopies(t, there) {
			t.Errorf("%v, draw %d: the tied head is no copy of the embedding any more", sorts, i)
		}
		back := s.convert(t, there, planOf(t, there, stepsOf(l, undo(l, all))...))
		sameBytes(t, back, m)
	}
}

// some returns first for a config, and variant for a variant.
func (s subject) some(variant, first int) int {
	if s.first {
		return first
	}
	return variant
}

// provePasses makes and applies plans of the passes that keep the function.
func (s subject) provePasses(t *testing.T, m *weights.Model, tried map[string]bool) {
	l := layoutOf(t, m)
	want := s.outputs(t, m)
	for _, passes := range []string{"scale,reorder,signs,shift", "scale", "reorder", "signs", "shift", "shift=2"}[:s.some(1, 6)] {
		p := makePlan(t, m, passes, 0)
		for _, step := range p.Steps {
			tried["the pass "+step.Pass] = true
		}
		there := s.convert(t, m, p)
		got, before := s.outputs(t, there), want
		if slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return s.Pass == "shift" && l.Claims[s.Tensor].Softmax }) {
			got, before = centred(got), centred(want)
		}
		if d := apart(before, got); !(d <= sameOutputs) {
			t.Errorf("%s: the outputs are %.2g apart\n%s", passes, d, s.culprits(t, m, l, exactSteps(l, p), want))
		}
		if !s.sameCopies(t, there) {
			t.Errorf("%s: the tied head is no copy of the embedding any more", passes)
		}
		if strings.Contains(passes, "shift") {
			continue
		}
		back := s.convert(t, there, planOf(t, there, stepsOf(l, undo(l, exactSteps(l, p)))...))
		sameBytes(t, back, m)
	}
}

// centred subtracts every row's mean, which does not affect softmax.
func centred(rows [][]float64) [][]float64 {
	var out [][]float64
	for _, row := range rows {
		mean := 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		c := make([]float64, len(row))
		for i, v := range row {
			c[i] = v - mean
		}
		out = append(out, c)
	}
	return out
}

// apart returns the largest difference divided by the largest magnitude; NaN if a value is NaN.
func apart(a, b [][]float64) float64 {
	var diff, size float64
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return math.Inf(1)
		}
		for k, v := range a[i] {
			diff, size = max(diff, math.Abs(v-b[i][k])), max(size, math.Abs(v))
		}
	}
	return diff / size
}

// culprits applies the symmetries of each kind of index alone, and lists those that change the outputs.
func (s subject) culprits(t *testing.T, m *weights.Model, l *arch.Layout, all symmetrySet, want [][]float64) string {
	var report strings.Builder
	for _, kind := range kindsOf(l) {
		for _, sort := range symmetryNames {
			if part := all.only(l, kind, sort); len(part) > 0 {
				if d := apart(want, s.outputs(t, quickly(t, m, l, part))); !(d <= sameOutputs) {
					fmt.Fprintf(&report, "\t%s %s alone: %.2g apart\n", sort, kind, d)
				}
			}
		}
	}
	return report.String()
}

func kindsOf(l *arch.Layout) (kinds []string) {
	for _, ix := range l.Indices {
		if !slices.Contains(kinds, ix.Kind) {
			kinds = append(kinds, ix.Kind)
		}
	}
	return kinds
}

// symmetrySet is a symmetry for indices by name.
type symmetrySet map[string]program.Symmetry

// only keeps the symmetries of one kind and sort, if they have an effect.
func (all symmetrySet) only(l *arch.Layout, kind, sort string) symmetrySet {
	part := symmetrySet{}
	for _, ix := range l.Indices {
		if s := all[ix.Name]; ix.Kind == kind && does(s, sort) {
			part[ix.Name] = map[string]program.Symmetry{"permute": {Perm: s.Perm}, "sign": {Flip: s.Flip}, "scale": {Exp: s.Exp}}[sort]
		}
	}
	return part
}

// note records the effective changes, such as "sign residual".
func (all symmetrySet) note(l *arch.Layout, tried map[string]bool) {
	for _, ix := range l.Indices {
		for _, sort := range symmetryNames {
			if len(ix.Uses) > 0 && does(all[ix.Name], sort) {
				tried[sort+" "+ix.Kind] = true
			}
		}
	}
}

// does reports whether a symmetry of a sort changes anything.
func does(s program.Symmetry, sort string) bool {
	switch sort {
	case "permute":
		return s.Perm != nil && !slices.Equal(s.Perm, order.Identity(len(s.Perm)))
	case "sign":
		return slices.Contains(s.Flip, true)
	}
	return slices.ContainsFunc(s.Exp, func(e int) bool { return e != 0 })
}

// drawSymmetries draws allowed symmetries of some sorts for every index. It draws at least one if there are any.
func drawSymmetries(rng *rand.Rand, l *arch.Layout, sorts []string) symmetrySet {
	all := symmetrySet{}
	for _, ix := range l.Indices {
		var s program.Symmetry
		if ix.Permute && ix.Len > 1 && slices.Contains(sorts, "permute") {
			for !does(s, "permute") {
				s.Perm = rng.Perm(ix.Len)
			}
		}
		if ix.Sign && slices.Contains(sorts, "sign") {
			s.Flip = make([]bool, ix.Len)
			for !does(s, "sign") {
				for label := range s.Flip {
					s.Flip[label] = rng.IntN(2) == 1
				}
			}
		}
		if ix.Scale && slices.Contains(sorts, "scale") {
			s.Exp = make([]int, ix.Len)
			for !does(s, "scale") {
				for label := range s.Exp {
					s.Exp[label] = rng.IntN(9) - 4
				}
			}
		}
		all[ix.Name] = s
	}
	return all
}

// stepsOf converts symmetries to a plan's steps.
func stepsOf(l *arch.Layout, all symmetrySet) []*plan.Step {
	var steps []*plan.Step
	for _, ix := range l.Indices {
		s := all[ix.Name]
		if s.Exp != nil {
			steps = append(steps, &plan.Step{Pass: "scale", Index: ix.Name, Data: s.Exp})
		}
		if s.Perm != nil {
			steps = append(steps, &plan.Step{Pass: "reorder", Index: ix.Name, Data: s.Perm})
		}
		if s.Flip != nil {
			flip := []int{}
			for label, f := range s.Flip {
				if f {
					flip = append(flip, label)
				}
			}
			steps = append(steps, &plan.Step{Pass: "signs", Index: ix.Name, Data: flip})
		}
	}
	return steps
}

// exactSteps is the inverse of stepsOf.
func exactSteps(l *arch.Layout, p *plan.Plan) symmetrySet {
	all := symmetrySet{}
	for _, step := range p.Steps {
		pass, _ := transform.Passes.Lookup(step.Pass)
		if pass.Class == "exact" {
			s := all[step.Index]
			if err := pass.Symmetry(step, l.Index(step.Index).Len, &s); err != nil {
				panic(err) // the plan was made here
			}
			all[step.Index] = s
		}
	}
	return all
}

// undo returns the symmetries that undo all. The result has indices of the same names. An index that is counted per
// label of another, such as "layers.0.kv.1.v", gets the name of its label's new place. An index that depends on
// another, such as a norm's scales on the residual stream, moved with it. So undo follows every label through an axis
// of its index.
func undo(l *arch.Layout, all symmetrySet) symmetrySet {
	back := symmetrySet{}
	for _, ix := range l.Indices {
		axis := l.Claims[ix.Uses[0].Tensor].Axes[ix.Uses[0].Axis]
		gather := axis.Gather(func(name string) []int { return all[name].Perm })
		came := labelsOf(l, axis, ix.Kind) // by source position
		var inverse program.Symmetry
		for label, positions := range axis.Positions(ix.Name) {
			from := came[program.AxisMap{Gather: gather}.From(positions[0])]
			s := all[from.index]
			if s.Perm != nil {
				inverse.Perm = append(slices.Grow(inverse.Perm, ix.Len), 0)[:ix.Len]
				inverse.Perm[from.label] = label
			}
			if s.Flip != nil {
				inverse.Flip = append(inverse.Flip, s.Flip[from.label])
			}
			if s.Exp != nil {
				inverse.Exp = append(inverse.Exp, -s.Exp[from.label])
			}
		}
		back[ix.Name] = inverse
	}
	return back
}

type labelOf struct {
	index string
	label int
}

// labelsOf returns, for each position of an axis, the label and index of a kind.
func labelsOf(l *arch.Layout, axis *arch.Axis, kind string) map[int]labelOf {
	at := map[int]labelOf{}
	for _, name := range axis.Indices() {
		if l.Index(name).Kind == kind {
			for label, positions := range axis.Positions(name) {
				for _, p := range positions {
					at[p] = labelOf{name, label}
				}
			}
		}
	}
	return at
}

// convert applies a plan: with Apply or, for variants, with the same programs but without flushing to the disk.
func (s subject) convert(t *testing.T, m *weights.Model, p *plan.Plan) *weights.Model {
	t.Helper()
	if s.first {
		return convert(t, m, p)
	}
	c, steps := compilerOf(t, m, layoutOf(t, m), p.Steps), plan.ByTensor(p.Steps)
	return rewritten(t, m, func(x weights.Tensor) []byte { return run(t, c, m, x.Name, steps[x.Name]) })
}

// convert applies a plan.
func convert(t *testing.T, m *weights.Model, p *plan.Plan) *weights.Model {
	t.Helper()
	return open(t, applied(t, m, p))
}

// sameBytes compares the tensors of two models.
func sameBytes(t *testing.T, got, want *weights.Model) {
	t.Helper()
	ok(t, want.Each(func(x weights.Tensor) error {
		if y, found := got.Tensor(x.Name); !found || string(y.Data) != string(x.Data) {
			t.Errorf("undoing the symmetries leaves %s changed", x.Name)
		}
		return nil
	}))
}

// quickly applies symmetries without a plan, its checks, and flushing to the disk.
func quickly(t tb, m *weights.Model, l *arch.Layout, all symmetrySet) *weights.Model {
	t.Helper()
	data := moved(t, m, l, all)
	return rewritten(t, m, func(x weights.Tensor) []byte { return data[x.Name] })
}

// moved returns the tensors of a layout after symmetries.
func moved(t tb, m *weights.Model, l *arch.Layout, all symmetrySet) map[string][]byte {
	t.Helper()
	syms := program.Symmetries{}
	for name, s := range all {
		syms[name] = &s
	}
	c, set := compilerOf(t, m, l, nil).With(syms), quant.Group(m, nil)
	data := map[string][]byte{}
	for name := range l.Claims {
		w, _ := set.Weight(name)
		p, err := c.Program(context.Background(), w, nil)
		ok(t, err)
		data[name] = make([]byte, p.Rows*p.RowBytes())
		p.Run(data[name], 0, p.Rows)
	}
	return data
}

// rewritten returns a model with other data.
func rewritten(t tb, m *weights.Model, data func(weights.Tensor) []byte) *weights.Model {
	t.Helper()
	dir, err := os.MkdirTemp(diskless(), "rewritten")
	ok(t, err)
	defer os.RemoveAll(dir) // the result stays mapped
	file, _, err := weights.EncodeHeader(m.Infos(), nil)
	ok(t, err)
	ok(t, m.Each(func(x weights.Tensor) error {
		file = append(file, data(x)...)
		return nil
	}))
	ok(t, os.WriteFile(filepath.Join(dir, "config.json"), m.Config, 0o666))
	ok(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), file, 0o666))
	result, err := weights.Open(dir)
	ok(t, err)
	t.Cleanup(func() { result.Close() })
	return result
}

// diskless is a folder in memory, if there is one, because thousands of models are written.
var diskless = sync.OnceValue(func() string {
	if dir, err := os.MkdirTemp("/dev/shm", "probe"); err == nil && os.Remove(dir) == nil {
		return "/dev/shm"
	}
	return ""
})

func TestInverseOfInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "labels")
		s := program.Symmetry{
			Perm: rapid.Permutation(order.Identity(n)).Draw(t, "order"),
			Flip: rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "signs"),
			Exp:  rapid.SliceOfN(rapid.IntRange(-9, 9), n, n).Draw(t, "exponents"),
		}
		back := s.Inverse().Inverse()
		if !slices.Equal(back.Perm, s.Perm) || !slices.Equal(back.Flip, s.Flip) || !slices.Equal(back.Exp, s.Exp) {
			t.Fatalf("%+v became %+v", s, back)
		}
		if inv := (program.Symmetry{}).Inverse(); inv.Perm != nil || inv.Flip != nil || inv.Exp != nil {
			t.Fatal("a zero became nonzero")
		}
	})
}
