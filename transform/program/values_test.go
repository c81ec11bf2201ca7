package program_test

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testdevice"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// randomAxis returns an order, signs and exponents of n positions.
func randomAxis(rng *rand.Rand, n int) program.AxisMap {
	a := program.AxisMap{Gather: rng.Perm(n), Flip: make([]bool, n), Exp: make([]int, n)}
	for i := range n {
		a.Flip[i], a.Exp[i] = rng.IntN(2) == 0, rng.IntN(5)-2
	}
	return a
}

// normals returns a matrix of normal values, with some that are not finite.
func normals(rng *rand.Rand, d weights.DType, rows, cols, other int) weights.Tensor {
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	x := testmodel.Matrix(d, cols, v)
	x.Name = "w"
	f := testmodel.FormatOf(d)
	for i := range v {
		if other > 0 && rng.IntN(other) == 0 {
			f.SetElem(x.Data, i, f.ExpMask()|uint32(rng.IntN(2)))
		}
	}
	return x
}

// TestSourceValues: values at the source's places, without signs and powers of two, are the source's. After a program that rounds, they are
// those of rounding alone.
func TestSourceValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, shape := range [][2]int{{3, 5}, {40, 7}, {2, 33_000}, {1000, 600}} {
		x := normals(rng, weights.F32, shape[0], shape[1], 0)
		f := testmodel.FormatOf(x.DType)
		round, err := testplan.Alone(t, x, 0).Program(t.Context(), pass.Round.TensorStep("w", pass.Bits{Zeroed: 12}))
		testmodel.OK(t, err)
		rounded := make([]byte, len(x.Data))
		round.Run(rounded, 0, shape[0])
		want := make([]float32, shape[0]*shape[1])
		f.Decode(want, rounded)
		for _, axes := range [][2]program.AxisMap{{{}, {}}, {randomAxis(rng, shape[0]), {}}, {{}, randomAxis(rng, shape[1])}, {randomAxis(rng, shape[0]), randomAxis(rng, shape[1])}} {
			p := *round
			p.Row, p.Col = axes[0], axes[1]
			for _, workers := range []int{1, 3} {
				got, err := p.SourceValues(t.Context(), workers)
				testmodel.OK(t, err)
				if !slices.Equal(got, want) {
					t.Errorf("%v, %d workers: other values than those of rounding alone", shape, workers)
				}
			}
			if shape[0]*shape[1] < 1000 {
				m, err := p.Outputs(t.Context())
				testmodel.OK(t, err)
				for n := range shape[0] {
					for k := range shape[1] {
						v := want[p.Row.From(n)*shape[1]+p.Col.From(k)]
						v = float32(math.Ldexp(float64(v), p.Row.Power(p.Row.From(n))+p.Col.Power(p.Col.From(k))))
						if p.Row.Flipped(p.Row.From(n)) != p.Col.Flipped(p.Col.From(k)) {
							v = -v
						}
						if m.Row(n)[k] != v {
							t.Fatalf("%v: value [%d, %d] is %g, want %g", shape, n, k, m.Row(n)[k], v)
						}
					}
				}
			}
			if _, stored := p.Stored(); stored {
				t.Error("values that are computed row by row are stored")
			}
		}
		p := *round
		p.OutAxis = 1
		m, err := p.Outputs(t.Context())
		testmodel.OK(t, err)
		for n := range shape[0] {
			for k := range shape[1] {
				if m.Row(k)[n] != want[n*shape[1]+k] {
					t.Fatalf("%v: with outputs as columns, value [%d, %d] is %g", shape, n, k, m.Row(k)[n])
				}
			}
		}
		if _, n := p.InputAxis(); n != shape[0] {
			t.Errorf("%d inputs", n)
		}
		if _, n := p.OutputAxis(); n != shape[1] {
			t.Errorf("%d outputs", n)
		}
	}
}

// trellis returns a step that chooses each value by itself.
func trellis(f weights.Format) *plan.Step {
	r := rounding.Rates{Significant: []float64{0.1}}
	for b := range f.MantBits + 1 {
		r.Significant = append(r.Significant, 0.3+0.1*float64(b))
	}
	return pass.Trellis.TensorStep("w", pass.Price{Lambda: 0.5, Rates: r})
}

// TestValuesChosenAlone: values that are chosen alone do not depend on others. Zeros of another step and of pruned outputs stay, and values that
// are not finite keep their bits.
func TestValuesChosenAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 4))
	for _, cols := range []int{4, 2048, 2052, 6000} {
		x := normals(rng, weights.BF16, 8, cols, 30)
		f := testmodel.FormatOf(x.DType)
		l := testplan.Alone(t, x, 0)
		plain := testplan.Result(t, l, trellis(f))
		sparse := testplan.Result(t, l, pass.Sparsify.TensorStep("w", pass.Zeros{Pattern: "2:4"}))
		for _, pruned := range [][]int{nil, {2, 7}} {
			for _, masked := range []bool{false, true} {
				steps := []*plan.Step{trellis(f)}
				if pruned != nil {
					steps = append(steps, pass.Prune.TensorStep("w", pass.Pruned{Outputs: pruned}))
				}
				if masked {
					steps = append(steps, pass.Sparsify.TensorStep("w", pass.Zeros{Pattern: "2:4"}))
				}
				p, err := l.Program(t.Context(), steps...)
				testmodel.OK(t, err)
				if p.HoldsResult() {
					t.Error("the whole result is held")
				}
				got := testplan.Result(t, l, steps...)
				for i := range x.Len() {
					was, want := f.Elem(x.Data, i), f.Value(f.Elem(plain.Data, i))
					if slices.Contains(pruned, i/cols) || masked && f.Value(f.Elem(sparse.Data, i)) == 0 {
						want = 0
					}
					b := f.Elem(got.Data, i)
					if !f.Finite(was) && b != was || f.Finite(was) && f.Value(b) != want {
						t.Fatalf("%d columns, pruned %v, masked %v: element %d, %#x, becomes %#x, want %g", cols, pruned, masked, i, was, b, want)
					}
				}
			}
		}
	}
}

// TestRowsOfBands: the stored rows of bands are those of the whole result, of programs that choose values jointly, alone and not at all.
func TestRowsOfBands(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.BF16)
	h := testmodel.HessiansOf(t, m)
	const name = "model.layers.0.mlp.up_proj.weight"
	x := testmodel.TensorOf(t, m, name)
	f := testmodel.FormatOf(x.DType)
	step := func(p *pass.Pass, data any) *plan.Step { return p.TensorStep(name, data) }
	alone := trellis(f)
	alone.Tensor = name
	for what, steps := range map[string][]*plan.Step{
		"nothing": nil, "round": {step(pass.Round, pass.Bits{Zeroed: 3})}, "alone": {alone},
		"jointly": {alone, step(pass.Compensate, pass.Damping{Damp: 0.02})},
		"pruned":  {alone, step(pass.Compensate, pass.Damping{Damp: 0.02}), step(pass.Prune, pass.Pruned{Inputs: []int{3}, Outputs: []int{1, 30}})},
	} {
		c := testplan.Compiler(t, m, testmodel.LayoutOf(t, m), h, steps)
		p, err := c.Program(t.Context(), testplan.Weight(x), steps)
		testmodel.OK(t, err)
		testmodel.OK(t, p.Prepare(t.Context(), 2))
		whole := make([]byte, len(x.Data))
		p.Run(whole, 0, p.Rows)
		data, err := p.StoredOf(t.Context(), nil, 2)
		testmodel.OK(t, err)
		if !bytes.Equal(data, whole) {
			t.Errorf("%s: all rows differ", what)
		}
		data, err = p.StoredOf(t.Context(), program.Bands{{4, 8}, {12, 16}}, 2)
		testmodel.OK(t, err)
		if size := p.RowBytes(); !bytes.Equal(data, slices.Concat(whole[4*size:8*size], whole[12*size:16*size])) {
			t.Errorf("%s: the rows of bands of the whole result differ", what)
		}
		if data, ok := p.Stored(); ok != p.HoldsResult() || ok && !bytes.Equal(data, whole) {
			t.Errorf("%s: stored %v", what, ok)
		}
		p.Release()
		if _, ok := p.Stored(); ok {
			t.Errorf("%s: stored after Release", what)
		}
		bands := program.Bands{{0, 4}, {12, 20}, {28, 32}}
		l, err := p.FittedOf(t.Context(), bands, h, 1)
		testmodel.OK(t, err)
		p.Use(l)
		testmodel.OK(t, p.Prepare(t.Context(), 1))
		data, err = p.StoredOf(t.Context(), bands, 2)
		testmodel.OK(t, err)
		var want []byte
		for _, r := range bands {
			want = append(want, whole[r[0]*p.RowBytes():r[1]*p.RowBytes()]...)
		}
		same := bytes.Equal(data, want)
		if what == "nothing" || what == "round" {
			if !same {
				t.Errorf("%s: the rows of bands differ", what)
			}
			continue
		}
		if len(data) != len(want) {
			t.Errorf("%s: %d bytes of bands, want %d", what, len(data), len(want))
		}
		// The scale of errors is that of the loaded rows, so values may differ. The band that is all rows has the same scale.
		all, err := c.Program(t.Context(), testplan.Weight(x), steps)
		testmodel.OK(t, err)
		everything := program.Bands{{0, all.Rows}}
		l, err = all.FittedOf(t.Context(), everything, h, 1)
		testmodel.OK(t, err)
		all.Use(l)
		testmodel.OK(t, all.Prepare(t.Context(), 1))
		if data, err = all.StoredOf(t.Context(), everything, 1); err != nil || !bytes.Equal(data, whole) {
			t.Errorf("%s: a band of all rows differs (%v)", what, err)
		}
		if _, ok := all.Stored(); ok {
			t.Errorf("%s: the rows of bands are stored as the whole", what)
		}
	}
}

// TestPreparedTogether: a device computes the programs of one layer that differ in their energies alone in one call, with the bytes of each program
// alone. Losses on the device are those on the CPU.
func TestPreparedTogether(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.BF16)
	h := testmodel.HessiansOf(t, m)
	card := testdevice.New()
	on := testdevice.Hessians{Hessians: h, Rounder: card}
	layout := testmodel.LayoutOf(t, m)
	names := []string{"model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight"}
	var programs []*program.Program
	var want [][]byte
	var lost []rounding.Loss
	layers := map[string]*program.Layer{}
	for _, name := range names {
		x := testmodel.TensorOf(t, m, name)
		f := testmodel.FormatOf(x.DType)
		w := testplan.Weight(x)
		compensated := pass.Compensate.TensorStep(name, pass.Damping{Damp: 0.02})
		for i, steps := range [][]*plan.Step{
			{compensated, trellis(f)}, {compensated, trellis(f)}, {compensated, pass.Round.TensorStep(name, pass.Bits{Zeroed: 4})},
			{pass.Compensate.TensorStep(name, pass.Damping{Damp: 0.05}), trellis(f)}, {compensated, trellis(f), pass.Prune.TensorStep(name, pass.Pruned{Inputs: []int{5}})},
			{trellis(f)}, {compensated, trellis(f)},
		} {
			for _, s := range steps {
				if s.Tensor = name; s.Pass == pass.Trellis.Name {
					d := s.Data.(pass.Price)
					d.Lambda *= float64(1 + i)
					s.Data = d
				}
			}
			cpu, err := testplan.Compiler(t, m, layout, h, steps).Program(t.Context(), w, steps)
			testmodel.OK(t, err)
			testmodel.OK(t, cpu.Prepare(t.Context(), 2))
			data := make([]byte, len(x.Data))
			cpu.Run(data, 0, cpu.Rows)
			want = append(want, data)
			held, err := cpu.HeldOf(t.Context(), nil, h, 1)
			testmodel.OK(t, err)
			l, err := held.LostOf(t.Context(), []*program.Program{cpu}, 1)
			testmodel.OK(t, err)
			lost = append(lost, l[0])
			p, err := testplan.Compiler(t, m, layout, on, steps).Program(t.Context(), w, steps)
			testmodel.OK(t, err)
			if layers[name] == nil {
				layers[name], err = p.Fitted(t.Context(), on, 1)
				testmodel.OK(t, err)
			}
			p.Use(layers[name])
			programs = append(programs, p)
		}
	}
	testmodel.EachFault(t, func(ctx context.Context, f *testmodel.Faults) error {
		for _, p := range programs {
			p.Release()
		}
		return program.PrepareTogether(ctx, programs, 1)
	})
	for _, p := range programs {
		p.Release()
	}
	card.Rounds, card.Together = 0, 0
	testmodel.OK(t, program.PrepareTogether(t.Context(), programs, 1))
	if card.Rounds != 8 || card.Together != 3 {
		t.Errorf("the device is called %d times, with at most %d programs; want 8 and 3", card.Rounds, card.Together)
	}
	testmodel.OK(t, program.PrepareTogether(t.Context(), programs, 1))
	if card.Rounds != 8 {
		t.Error("prepared programs are computed again")
	}
	for i, p := range programs {
		testmodel.OK(t, p.Prepare(t.Context(), 1))
		data := make([]byte, len(want[i]))
		if p.Run(data, 0, p.Rows); !bytes.Equal(data, want[i]) {
			t.Errorf("program %d: other bytes than on the CPU", i)
		}
	}
	if card.Rounds != 8 {
		t.Errorf("Prepare computes again: %d calls", card.Rounds)
	}
	for i, half := range [][]*program.Program{programs[:7], programs[7:]} {
		held, err := half[0].HeldOf(t.Context(), nil, on, 1)
		testmodel.OK(t, err)
		if held.Batch() < 2 {
			t.Errorf("batches of %d", held.Batch())
		}
		before := card.Powers
		for range 2 { // the signal is measured once
			got, err := held.LostOf(t.Context(), half, 1)
			testmodel.OK(t, err)
			if !slices.EqualFunc(got, lost[7*i:7*i+7], func(a, b rounding.Loss) bool {
				return math.Abs(a.Error-b.Error) <= 1e-9*b.Error && math.Abs(a.Signal-b.Signal) <= 1e-9*b.Signal
			}) {
				t.Errorf("losses %v, want %v", got, lost[7*i:7*i+7])
			}
		}
		if card.Powers != before+2 || math.Abs(held.Signal-lost[7*i].Signal) > 1e-9*held.Signal {
			t.Errorf("%d calls for losses, signal %g", card.Powers-before, held.Signal)
		}
	}
}

// TestUnknownTypes: values of a type without a format can be moved. They cannot be changed or multiplied.
func TestUnknownTypes(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.BF16)
	x := testmodel.Memory(weights.I64, []int{2, 2}, make([]byte, 32))
	x.Name = "model.layers.0.mlp.up_proj.weight"
	step := pass.Round.TensorStep(x.Name, pass.Bits{Zeroed: 1})
	for _, steps := range [][]*plan.Step{nil, {step}} {
		c := testplan.Compiler(t, m, nil, nil, steps)
		if _, err := c.Program(t.Context(), testplan.Weight(x), steps); (err == nil) != (steps == nil) || err != nil && !strings.Contains(err.Error(), "values of type I64 cannot be changed") {
			t.Errorf("%d steps: %v", len(steps), err)
		}
	}
	layout := testmodel.LayoutOf(t, m)
	ffn := layout.Index("layers.0.ffn")
	backwards := order.Identity(ffn.Len)
	slices.Reverse(backwards)
	for what, sym := range map[string]*program.Symmetry{"order": {Perm: backwards}, "signs": {Flip: make([]bool, ffn.Len)}, "powers": {Exp: make([]int, ffn.Len)}} {
		c := testplan.Compiler(t, m, layout, nil, nil).With(program.Symmetries{ffn.Name: sym})
		if _, err := c.Program(t.Context(), testplan.Weight(x), nil); (err == nil) != (what == "order") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
