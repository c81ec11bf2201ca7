package testplan

import (
	"context"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Rules returns the compiler's rules for the module's own passes.
func Rules() map[string]program.Rule {
	rules := map[string]program.Rule{}
	for i, r := range transform.Passes {
		rules[r.Pass.Name] = program.Rule{Rank: i, Symmetry: r.Pass.Symmetry, Compile: r.Pass.Compile, Check: r.Pass.Check}
	}
	return rules
}

// Compiler returns a compiler of steps for a model, without a plan and its checks. h may be nil.
func Compiler(t testmodel.TB, m *weights.Model, l *arch.Layout, h program.Hessians, steps []*plan.Step) *program.Compiler {
	t.Helper()
	c, err := program.NewCompiler(program.CompilerOptions{Weights: quant.Group(m, nil), Layout: l, Hessians: h, Rules: Rules()}, steps)
	testmodel.OK(t, err)
	return c
}

// Weight returns a tensor as a weight with one part.
func Weight(x weights.Tensor) *quant.Weight {
	w := &quant.Weight{Name: x.Name, DType: x.DType, Shape: x.Shape, Unit: 1, Parts: []quant.Part{{Tensor: x}}}
	w.Rows, w.Cols = x.Matrix()
	return w
}

// Alone returns the layer of one matrix outside any model, in prefill and the stationary role.
func Alone(t testmodel.TB, x weights.Tensor, outAxis int) *pass.Layer {
	t.Helper()
	layout := &arch.Layout{Claims: map[string]*arch.Claim{x.Name: {Name: x.Name, Role: arch.Linear, OutAxis: outAxis}}}
	c, err := program.NewCompiler(program.CompilerOptions{Layout: layout, Rules: Rules()}, nil)
	testmodel.OK(t, err)
	about := &pass.Context{Workload: cost.Workload{Prefill: 1}, Cost: testmodel.TogglesCost{}, Workers: 1}
	l, err := pass.NewLayer(context.Background(), about, c, Weight(x), nil)
	testmodel.OK(t, err)
	return l
}

// Result returns the tensor that steps make of a layer.
func Result(t testmodel.TB, l *pass.Layer, steps ...*plan.Step) weights.Tensor {
	t.Helper()
	p, err := l.Program(context.Background(), steps...)
	testmodel.OK(t, err)
	return ran(t, p)
}

// ran returns the tensor that a program makes of its source.
func ran(t testmodel.TB, p *program.Program) weights.Tensor {
	t.Helper()
	testmodel.OK(t, p.Prepare(context.Background(), 2))
	defer p.Release()
	x := p.Source.Parts[0].Tensor
	x.Data = make([]byte, len(x.Data))
	p.Run(x.Data, 0, p.Rows)
	return x
}

// Under returns the tensors that steps make of all, without a folder. m has the layout. h may be nil.
func Under(t testmodel.TB, all testmodel.Tensors, m *weights.Model, h program.Hessians, steps []*plan.Step) testmodel.Tensors {
	t.Helper()
	c := Compiler(t, m, testmodel.LayoutOf(t, m), h, steps)
	of, result := ByTensor(steps), testmodel.Tensors{}
	for name, x := range all {
		p, err := c.Program(context.Background(), Weight(x), of[name])
		testmodel.OK(t, err)
		result[name] = ran(t, p)
	}
	return result
}

// Planned returns the tensors that a plan for passes makes of a model. h may be nil.
func Planned(t testmodel.TB, m *weights.Model, h program.Hessians, passes string) testmodel.Tensors {
	t.Helper()
	return Under(t, testmodel.TensorsOf(m), m, h, Weighed(t, m, h, passes).Steps)
}

// ByTensor groups steps by tensor.
func ByTensor(steps []*plan.Step) map[string][]*plan.Step {
	of := map[string][]*plan.Step{}
	for _, s := range steps {
		if s.Tensor != "" {
			of[s.Tensor] = append(of[s.Tensor], s)
		}
	}
	return of
}

// Lossy returns a plan's steps on tensors. It removes the rates that couple rows in trellis, because these depend on
// the order of rows.
func Lossy(t testmodel.TB, p *plan.Plan) (steps []*plan.Step) {
	t.Helper()
	for _, s := range p.Steps {
		if s.Tensor == "" {
			continue
		}
		if s.Pass == pass.Trellis.Name {
			d, err := plan.Data[pass.Price](s)
			testmodel.OK(t, err)
			d.Rates.Differ, d.Rates.Sign, d.Rates.Run = 0, 0, 0
			s.Data = d
		}
		steps = append(steps, s)
	}
	return steps
}
