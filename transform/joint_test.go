package transform_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// wide returns a model whose layers have more outputs than one worker rounds at a time, so that several workers share
// a layer.
func wide(t *testing.T, name string, d weights.DType) *weights.Model {
	t.Helper()
	changes := `{"intermediate_size": 280, "n_inner": 280, "num_hidden_layers": 1, "n_layer": 1}`
	return open(t, folder(t, config(t, name, changes), synth.Options{Seed: 1, DType: d, ShardBytes: 60_000}))
}

func TestJointChoicesAreTheSameForAnyNumberOfWorkers(t *testing.T) {
	passes := []string{
		"scale,reorder,signs,sparsify=0.2/8x4,grid=8,compensate=0.01",
		"prune=0.25,round=2,compensate",
		"trellis=0.01",
		"scale,reorder,prune=0.25,trellis=0.05,compensate",
		"sparsify=2:4,compensate",
	}
	types := testmodel.DTypes
	if testing.Short() {
		types = testmodel.DTypes[:2]
	}
	for i, d := range types {
		for j, name := range []string{"llama-tiny", "gpt2-tiny"} {
			m := wide(t, name, d)
			in := testmodel.HessiansOf(t, m)
			p := testplan.Weighed(t, m, in, passes[(i+2*j)%len(passes)])
			var want map[string]string
			for _, workers := range []int{1, 2, 5} {
				out := filepath.Join(t.TempDir(), "out")
				_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Hessians: in, Workers: workers})
				ok(t, err)
				if want == nil {
					want = files(t, out)
				}
				sameFiles(t, files(t, out), want)
			}
		}
	}
}

func TestSamePlanWithHessiansForAnyNumberOfWorkers(t *testing.T) {
	m := wide(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	var want []byte
	for _, workers := range []int{1, 2, 5} {
		o := options(t, "reorder,prune=0.25,trellis=0.05,compensate", 0)
		o.Hessians, o.Workers = in, workers
		p, err := transform.Plan(t.Context(), m, o)
		ok(t, err)
		if want == nil {
			want = testplan.Encoded(t, p)
		}
		if !bytes.Equal(testplan.Encoded(t, p), want) {
			t.Errorf("%d workers make another plan", workers)
		}
	}
}

func TestCompensateLowersTheLoss(t *testing.T) {
	for name, d := range map[string]weights.DType{"llama-tiny": weights.BF16, "gpt2-tiny": weights.F8E4M3} {
		m := tiny(t, name, d)
		in := testmodel.HessiansOf(t, m)
		for _, passes := range []string{"round=2", "grid=2", "sparsify=0.3/element", "sparsify=0.2/4x4,grid=4", "trellis=0.1"} {
			without, with := testplan.Planned(t, m, in, passes), testplan.Planned(t, m, in, passes+",compensate")
			var a, b float64
			testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
				h := in.Fitting[x.Name]
				a += testmodel.Lost(x, without[x.Name], outAxis, h)
				b += testmodel.Lost(x, with[x.Name], outAxis, h)
			})
			if !(b < 0.7*a) {
				t.Errorf("%s %s: compensated %g of the power is lost, else %g", name, passes, b, a)
			}
		}
	}
}

// TestCompensateKeepsTheZeros: zeros of sparsify and of the source stay zero under compensate and trellis.
func TestCompensateKeepsTheZeros(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := wide(t, name, weights.F16)
		in := testmodel.HessiansOf(t, m)
		for _, zeros := range []string{"sparsify=0.3/element", "sparsify=0.3/8x4", "sparsify=2:4"} {
			plain := testplan.Planned(t, m, in, zeros)
			for _, more := range []string{",compensate", ",grid=16,compensate", ",trellis=1e-5"} {
				for x, result := range testplan.Planned(t, m, in, zeros+more) {
					after := values(result)
					for i, v := range values(plain[x]) {
						if v == 0 && after[i] != 0 {
							t.Fatalf("%s %s%s: element %d is %g", x, zeros, more, i, after[i])
						}
					}
				}
			}
		}
	}
}

// TestCompensatedBeforeAndAfterAnOrder: orders and signs change neither the choices nor their sequence, so a layer
// may be moved before or after. Values are compared, because chosen zeros have no sign.
func TestCompensatedBeforeAndAfterAnOrder(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		in := testmodel.HessiansOf(t, m)
		exact := makePlan(t, m, "reorder,signs", 0).Steps
		for _, passes := range []string{"round=5,compensate", "trellis=0.05", "trellis=0.05,compensate", "prune=0.2,trellis=0.01,compensate"} {
			steps := testplan.Lossy(t, testplan.Weighed(t, m, in, passes))
			want := testplan.Under(t, testmodel.TensorsOf(m), m, in, steps)
			want = testplan.Under(t, want, m, in, exact)
			for x, got := range testplan.Under(t, testmodel.TensorsOf(m), m, in, append(slices.Clone(exact), steps...)) {
				if !slices.Equal(values(got), values(want[x])) {
					t.Errorf("%s: %s differs", passes, x)
				}
			}
		}
	}
}

// TestCompensatedAfterScales: scales change the sequence of choices. The loss may fall, and must not double.
func TestCompensatedAfterScales(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		in := testmodel.HessiansOf(t, m)
		plain := testplan.Planned(t, m, in, "round=6,compensate")
		p := testplan.Weighed(t, m, in, "scale,reorder,signs,round=6,compensate")
		got := testplan.Under(t, testmodel.TensorsOf(m), m, in, p.Steps)
		exact := slices.DeleteFunc(slices.Clone(p.Steps), func(s *plan.Step) bool { return s.Tensor != "" })
		moved := testplan.Under(t, testmodel.TensorsOf(m), m, in, exact)
		inputs, _ := testmodel.Forward(t, m, moved, 1)
		testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
			a := testmodel.Lost(x, plain[x.Name], outAxis, in.Fitting[x.Name])
			b := testmodel.Lost(moved[x.Name], got[x.Name], outAxis, inputs[x.Name])
			if !(b < 2*a) {
				t.Errorf("%s: %g of the power is lost, before scales %g", x.Name, b, a)
			}
		})
	}
}

func TestResumeWithHessians(t *testing.T) {
	m := open(t, folder(t, config(t, "llama-tiny", ""), synth.Options{ShardBytes: 25_000}))
	if len(m.Shards) < 5 {
		t.Fatalf("%d shards", len(m.Shards))
	}
	in := testmodel.HessiansOf(t, m)
	p := testplan.Weighed(t, m, in, "reorder,prune=0.2,trellis=0.02,compensate")
	want := files(t, testplan.Applied(t, m, in, p))
	left := 0
	cancelled := false
	testmodel.EachLinear(t, m, func(x weights.Tensor, _ int) {
		cancelled = !cancelled
		out := filepath.Join(t.TempDir(), "out")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		broken, died := *in, errors.New("died")
		broken.Asked = func(tensor string) error {
			switch {
			case tensor != x.Name:
			case cancelled:
				cancel()
			default:
				return died
			}
			return nil
		}
		_, err := transform.Apply(ctx, m, p, out, transform.ApplyOptions{Hessians: &broken})
		if !errors.Is(err, died) && !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: error %v", x.Name, err)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Fatal("a half output lies under the final name")
		}
		if _, err := os.Lstat(out + testplan.PartialSuffix); err == nil {
			left++
			_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
			wantError(t, err, "give the tokens that the plan was made with")
		}
		_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Hessians: in, Resume: true})
		ok(t, err)
		sameFiles(t, files(t, out), want)
	})
	if left < 8 {
		t.Errorf("parts were left %d times", left)
	}
}

// TestSourceCutShortDuringAJointChoice: a source file that shrinks during a joint choice is an error and no crash.
func TestSourceCutShortDuringAJointChoice(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the fault of a mapped file that shrinks is another there")
	}
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
	m := open(t, dir)
	in := testmodel.HessiansOf(t, m)
	p := testplan.Weighed(t, m, in, "sparsify=0.2/element,round=3,compensate") // zeros are read after the Hessian
	c := testplan.Compiler(t, m, layoutOf(t, m), in, p.Steps)
	x := tensorOf(t, m, "lm_head.weight")
	prog, err := c.Program(t.Context(), testplan.Weight(x), testplan.ByTensor(p.Steps)[x.Name])
	ok(t, err)
	in.Asked = func(string) error { return os.Truncate(x.File, 100) }
	wantError(t, prog.Prepare(t.Context(), 2), x.File, "reading failed")
}

func TestJointChoicesKeepWhatIsNotFinite(t *testing.T) {
	for i, d := range []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2} {
		name := []string{"llama-tiny", "gpt2-tiny"}[i%2]
		dir := folder(t, config(t, name, ""), synth.Options{DType: d})
		in := testmodel.HessiansOf(t, open(t, dir))
		plant(t, dir)
		m := open(t, dir)
		for _, passes := range []string{"trellis=0.1", "trellis=0.1,compensate", "sparsify=0.3/runs,compensate", "prune=0.5,grid=8,compensate"} {
			result, f := testplan.Planned(t, m, in, passes), formatOf(d)
			testmodel.EachLinear(t, m, func(x weights.Tensor, _ int) {
				for i := range x.Len() {
					a, b := f.Elem(x.Data, i), f.Elem(result[x.Name].Data, i)
					if (!f.Finite(a) || !f.Finite(b)) && a != b {
						t.Fatalf("%s %s %s: element %d was %#x, is %#x", d, x.Name, passes, i, a, b)
					}
				}
			})
		}
	}
}

// TestNothingInNothingOut: layers of zeros, and layers whose inputs are zeros, are rounded like others. No value
// becomes NaN or infinite.
func TestNothingInNothingOut(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		dir := folder(t, config(t, name, ""), synth.Options{})
		in := testmodel.HessiansOf(t, open(t, dir))
		edit(t, dir, func(info weights.Info, data []byte) {
			if strings.Contains(info.Name, ".1.") && strings.Contains(info.Name, "proj.weight") {
				clear(data)
			}
		})
		m := open(t, dir)
		testmodel.EachLinear(t, m, func(x weights.Tensor, _ int) {
			if h := in.Fitting[x.Name]; strings.Contains(x.Name, ".0.") {
				in.Fitting[x.Name] = sgemm.Dense(h.Rows, h.Cols, nil)
			}
		})
		for _, passes := range []string{"trellis=0.1", "trellis=0.1,compensate", "sparsify=0.2/runs,grid=4,compensate", "prune=0.2,round=2,compensate"} {
			for x, result := range testplan.Planned(t, m, in, passes) {
				if len(nonFinite(result)) > 0 {
					t.Errorf("%s %s: values are not finite", x, passes)
				}
			}
		}
	}
}

// TestStepsThatDoNotGoTogether: incompatible passes are an error before a tensor is read, and so are their steps in a
// hand-written plan.
func TestStepsThatDoNotGoTogether(t *testing.T) {
	m := tiny(t, "gpt2-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	const tensor = "transformer.h.0.mlp.c_fc.weight"
	for passes, want := range map[string]string{
		"trellis=0.1,round=2":              "trellis rounds the layer jointly: leave out all but one of trellis, round, which choose the layer's values",
		"grid=8,round=2,compensate":        "compensate rounds the layer jointly: leave out all but one of grid, round, which choose the layer's values",
		"round=2/truncate,compensate":      "compensate rounds the layer jointly: round: truncated values cannot be compensated: round to nearest; leave out one of these two passes",
		"round=2,prune=0.2":                "prune rounds the layer jointly: no pass compensates the errors of the inputs that prune zeroes",
		"shift=4/epilogue,compensate=0.01": "compensate rounds the layer jointly: leave out compensate, or leave out shift, which computes values one by one",
		"shift=4/epilogue,trellis=0.1":     "trellis rounds the layer jointly: leave out trellis, or leave out shift, which computes values one by one",
	} {
		o := options(t, passes, 1)
		o.Hessians = in
		if o.Validate() == nil {
			t.Errorf("%s: is not refused", passes)
		}
		var steps []*plan.Step
		for _, c := range o.Passes {
			with := c.String()
			switch { // passes without effect alone
			case c.Pass.Companion:
				with += ",compensate"
			case c.Pass.Feedback != nil:
				with = "round=2," + with
			}
			for _, s := range testplan.Weighed(t, m, in, with).Steps {
				if s.Pass == c.Pass.Name {
					steps = append(steps, s)
				}
			}
		}
		_, err := testplan.Compiler(t, m, layoutOf(t, m), in, steps).Program(t.Context(), testplan.Weight(tensorOf(t, m, tensor)), testplan.ByTensor(steps)[tensor])
		wantError(t, err, "invalid plan", tensor, want)
	}
}

// TestChoosersSaySo: a pass declares Chooser and Joint if and only if its operations are.
func TestChoosersSaySo(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	for name, passes := range map[string]string{"prune": "prune=0.2,compensate", "sparsify": "sparsify=0.2/element", "trellis": "trellis=0.1",
		"grid": "grid=4", "round": "round=2", "compensate": "round=2,compensate"} {
		steps := testplan.Weighed(t, m, in, passes).Steps
		i := slices.IndexFunc(steps, func(s *plan.Step) bool { return s.Pass == name })
		x := tensorOf(t, m, steps[i].Tensor)
		prog, err := testplan.Compiler(t, m, layoutOf(t, m), in, nil).Program(t.Context(), testplan.Weight(x), nil)
		ok(t, err)
		p, _ := transform.Passes.Lookup(name)
		o, err := p.Compile(steps[i], &program.Context{Context: t.Context(), Program: prog})
		ok(t, err)
		if p.Chooser != (o.Chooser != nil) || p.Joint != o.Joint {
			t.Errorf("%s: the pass says chooser %v and joint %v, its operation is otherwise", name, p.Chooser, p.Joint)
		}
	}
}

// TestJointResultIsReleased: Prepare computes a result once and keeps it until Release. Then it can compute the
// result again.
func TestJointResultIsReleased(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	p := testplan.Weighed(t, m, in, "round=4,compensate")
	c := testplan.Compiler(t, m, layoutOf(t, m), in, p.Steps)
	x := tensorOf(t, m, "lm_head.weight")
	prog, err := c.Program(t.Context(), testplan.Weight(x), testplan.ByTensor(p.Steps)[x.Name])
	ok(t, err)
	asked := 0
	in.Asked = func(string) error { asked++; return nil }
	var want []byte
	for range 2 {
		ok(t, prog.Prepare(t.Context(), 2))
		ok(t, prog.Prepare(t.Context(), 2))
		got := make([]byte, len(x.Data))
		prog.Run(got, 0, prog.Rows)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Error("the second result differs")
		}
		prog.Release()
	}
	if asked != 2 {
		t.Errorf("the result was made %d times", asked)
	}
}
