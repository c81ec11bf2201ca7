package measure_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// still returns a model whose weights toggle no bit.
func still(t *testing.T, dir string) *weights.Model {
	testmodel.Edit(t, dir, func(_ weights.Info, data []byte) { clear(data) })
	return testmodel.Open(t, dir)
}

func wholeModels(t *testing.T) (before, after *weights.Model) {
	config := testmodel.Config(t, "llama-tiny", `{"max_position_embeddings": 64}`)
	before = testmodel.Open(t, testmodel.Folder(t, config, synth.Options{Seed: 1}))
	return before, still(t, testmodel.Folder(t, config, synth.Options{Seed: 1}))
}

// TestWhole finds the planted difference of the simulated card, and checks tokens, shares and requests.
func TestWhole(t *testing.T) {
	before, after := wholeModels(t)
	m := measure.Simulated(power.DefaultSim())
	defer m.Close()
	stages := map[string]bool{}
	r, err := measure.Whole(t.Context(), m, before, after, measure.WholeOptions{
		Batches: []int{1, 8}, Context: 32, Output: 16,
		Meter:    power.Options{Time: 20 * time.Second, Precision: 0.01},
		Progress: func(e measure.Event) { stages[e.Stage] = true },
	})
	testmodel.OK(t, err)
	if !r.Simulated || len(r.Steps) != 3 || len(r.Requests) != 2 || !stages["load"] || !stages["decode, batch 8, context 32"] {
		t.Fatalf("%+v, stages %v", r, stages)
	}
	for i, want := range []struct {
		phase                  string
		batch, context, tokens int
	}{{"decode", 1, 32, 1}, {"decode", 8, 32, 8}, {"prefill", 1, 48, 48}} { // a prompt of as many tokens as the model takes beside the output
		s := r.Steps[i]
		if s.Phase != want.phase || s.Batch != want.batch || s.Context != want.context || s.Tokens != want.tokens {
			t.Errorf("step %d is %+v, want %+v", i, s, want)
		}
		if !(s.Interval[1] < 0.99) || !(s.Interval[0] < s.Relative && s.Relative < s.Interval[1]) {
			t.Errorf("%s: energy %v in %v: zeros take less than random weights", s.Name(), s.Relative, s.Interval)
		}
		if got := s.Before.Joules * float64(s.Tokens); math.Abs(got/s.Run.Baseline.Joules-1) > 1e-9 {
			t.Errorf("%s: %v J for all tokens, a step took %v", s.Name(), got, s.Run.Baseline.Joules)
		}
		if got := s.Before.PerSecond * s.Before.Seconds; math.Abs(got-1) > 1e-9 {
			t.Errorf("%s: tokens a second times seconds a token is %v", s.Name(), got)
		}
		// 1/1.25 of the time, at a higher power than the rest.
		if math.Abs(s.LinearTime-0.8) > 0.02 || s.LinearEnergy < s.LinearTime {
			t.Errorf("%s: linear layers take %v of the energy and %v of the time", s.Name(), s.LinearEnergy, s.LinearTime)
		}
	}
	prefill, q := r.Steps[2], r.Requests[1]
	want := (48*prefill.After.Joules + 16*r.Steps[1].After.Joules) / 16
	if q.Batch != 8 || q.Context != 32 || q.Prompt != 48 || q.Output != 16 || math.Abs(q.PerOutputAfter/want-1) > 1e-9 || math.Abs(q.PerTotalAfter/(want*16/64)-1) > 1e-9 {
		t.Errorf("request %+v, want %v J per output token", q, want)
	}
	if want := "the model's sequences have at most 64 tokens: a request is assumed to have 48 prompt tokens and 16 output tokens"; r.Note != want {
		t.Errorf("note %q, want %q", r.Note, want)
	}
}

// TestWholeRequest: by default an output is decoded at the context of its middle token. A request weighs the ratios of both
// steps by the source's energy, and their errors, which are independent.
func TestWholeRequest(t *testing.T) {
	before, after := wholeModels(t)
	m := measure.Simulated(power.DefaultSim())
	defer m.Close()
	r, err := measure.Whole(t.Context(), m, before, after, measure.WholeOptions{Batches: []int{4}, Prompt: 40, Output: 16, Meter: power.Options{Time: 20 * time.Second}})
	testmodel.OK(t, err)
	decode, prefill, q := r.Steps[0], r.Steps[1], r.Requests[0]
	if r.Note != "" || decode.Context != 48 || q.Context != 48 || prefill.Context != 40 {
		t.Errorf("contexts %d, %d and %d, want 48, 48 and 40", decode.Context, q.Context, prefill.Context)
	}
	a, b := 16*decode.Before.Joules, 40*prefill.Before.Joules
	relative := (a*decode.Relative + b*prefill.Relative) / (a + b)
	off := math.Hypot(a*(decode.Interval[1]-decode.Relative), b*(prefill.Interval[1]-prefill.Relative)) / (a + b)
	if math.Abs(q.Relative-relative) > 1e-12 || len(q.Interval) != 2 || math.Abs(q.Interval[1]-relative-off) > 1e-12 || !(q.Interval[0] < q.Relative) {
		t.Errorf("request %+v, want %v + %v", q, relative, off)
	}
}

// TestWholeCheck: what cannot be measured is known before a model is loaded.
func TestWholeCheck(t *testing.T) {
	before, after := wholeModels(t)
	testmodel.OK(t, measure.WholeOptions{}.Check(before, after))
	testmodel.WantError(t, measure.WholeOptions{Context: 65}.Check(before, after), "a decode step with sequences of 65 tokens: the model's limit is 64 tokens")
	testmodel.WantError(t, measure.WholeOptions{Prompt: 65}.Check(before, after), "a prefill with sequences of 65 tokens: the model's limit is 64 tokens")
	long := measure.WholeOptions{Prompt: 50, Output: 15}.Check(before, after)
	testmodel.WantError(t, long, "a request with sequences of 65 tokens: the model's limit is 64 tokens")
	if !errors.Is(long, measure.ErrTooLong) {
		t.Error(long)
	}
	testmodel.OK(t, measure.WholeOptions{Prompt: 64}.Check(before, after)) // without an output
	testmodel.OK(t, measure.WholeOptions{Prompt: 64, Output: 64, Batches: []int{}}.Check(before, after))
	encoder := testmodel.Random(t, "bert-tiny", 1)
	testmodel.WantError(t, measure.WholeOptions{Others: []*weights.Model{encoder}}.Check(before, after), encoder.Dir, "no forward pass")
}

// TestWholeNoPrefill: without a prefill there are no requests.
func TestWholeNoPrefill(t *testing.T) {
	before, after := wholeModels(t)
	m := measure.Simulated(power.DefaultSim())
	defer m.Close()
	r, err := measure.Whole(t.Context(), m, before, after, measure.WholeOptions{Batches: []int{2}, Prompt: -1, Meter: power.Options{Time: 5 * time.Second}})
	testmodel.OK(t, err)
	if len(r.Steps) != 1 || r.Requests != nil || r.Steps[0].Context != 64 {
		t.Errorf("%+v", r)
	}
}

// full is a machine without room for a second model, or for a step.
type full struct {
	measure.Machine
	models, steps int
	closed        *int
}

func (f *full) NewRunner(ctx context.Context, m *weights.Model, layout *arch.Layout, longest int) (measure.Runner, error) {
	if f.models == 0 {
		return nil, cuda.ErrOutOfMemory
	}
	f.models--
	r, err := f.Machine.NewRunner(ctx, m, layout, longest)
	return counted{r, f}, err
}

type counted struct {
	measure.Runner
	machine *full
}

func (c counted) NewStep(ctx context.Context, name string, w runner.Work, like measure.Step) (measure.Step, error) {
	if c.machine.steps == 0 {
		return nil, cuda.ErrOutOfMemory
	}
	c.machine.steps--
	return c.Runner.NewStep(ctx, name, w, like)
}

func (c counted) Close() error { *c.machine.closed++; return c.Runner.Close() }

// TestWholeWithoutRoom: what was measured is kept, and what was loaded is freed.
func TestWholeWithoutRoom(t *testing.T) {
	before, after := wholeModels(t)
	for _, c := range []struct{ models, steps, measured, closed int }{{1, 0, 0, 1}, {3, 0, 0, 3}, {3, 6, 1, 3}} {
		m := &full{measure.Simulated(power.DefaultSim()), c.models, c.steps, new(int)}
		r, err := measure.Whole(t.Context(), m, before, after, measure.WholeOptions{Batches: []int{1, 2}, Meter: power.Options{Time: 5 * time.Second}})
		if !errors.Is(err, cuda.ErrOutOfMemory) {
			t.Errorf("%+v: %v", c, err)
		}
		want := "the source, its copy and all outputs must fit on the card together"
		if c.models == 3 {
			want = "measure a step with fewer sequences or fewer tokens"
		}
		testmodel.WantError(t, err, want)
		measured := 0
		if r != nil {
			measured = len(r.Steps)
		}
		if measured != c.measured || *m.closed != c.closed {
			t.Errorf("%+v: %d steps were kept, %d models closed", c, measured, *m.closed)
		}
		m.Close()
	}
}

// TestWholeCancelled ends with the context's error and what was measured.
func TestWholeCancelled(t *testing.T) {
	before, after := wholeModels(t)
	m := measure.Simulated(power.DefaultSim())
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := measure.Whole(ctx, m, before, after, measure.WholeOptions{Batches: []int{1, 2}, Meter: power.Options{Time: 5 * time.Second},
		Progress: func(e measure.Event) {
			if e.Stage == "decode, batch 2, context 48" {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) || r == nil || r.Steps[0].Relative == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestWholeExchangesMemory: a planted effect of the addresses is not in the ratios, because every model is measured in
// the memory of every other. With fewer blocks than models it is, and the result says so.
func TestWholeExchangesMemory(t *testing.T) {
	before, after := wholeModels(t)
	o := power.DefaultSim()
	o.Addresses, o.PowerNoise = 0.02, 0.0005
	run := func(time time.Duration, others ...*weights.Model) measure.WholeStep {
		t.Helper()
		m := measure.Simulated(o)
		defer m.Close()
		r, err := measure.Whole(t.Context(), m, before, after, measure.WholeOptions{Batches: []int{4}, Prompt: -1, Others: others, Meter: power.Options{Time: time, Precision: 1e-6}})
		testmodel.OK(t, err)
		return r.Steps[0]
	}
	warned := func(s measure.WholeStep) bool {
		return slices.ContainsFunc(s.Run.Warnings, func(w string) bool { return strings.Contains(w, "effects of memory addresses") })
	}
	short := run(5 * time.Second)
	if off := math.Abs(short.Run.Null.RelativeEnergy - 1); off < 0.015 || !warned(short) {
		t.Fatalf("in one arrangement the copy is off by %v, warnings %q: this test tests nothing", off, short.Run.Warnings)
	}
	long := run(50 * time.Second)
	if off := math.Abs(long.Run.Null.RelativeEnergy - 1); off > 0.003 || warned(long) || !long.Run.Valid || long.Relative > 0.9 {
		t.Errorf("the copy is off by %v, the output %v, warnings %q, %q", off, long.Relative, long.Run.Warnings, long.Run.Invalid)
	}
	several := run(100*time.Second, before, after)
	if off := math.Abs(several.Run.Null.RelativeEnergy - 1); off > 0.003 || warned(several) || len(several.Others) != 2 {
		t.Fatalf("the copy is off by %v, %d other outputs", off, len(several.Others))
	}
	for i, want := range []float64{1, several.Relative} {
		got := several.Others[i]
		if math.Abs(got.Relative/want-1) > 0.003 || len(got.Interval) != 2 || got.Model != []*weights.Model{before, after}[i].Dir || got.After.Joules == 0 {
			t.Errorf("other output %d: %+v, want %v", i, got, want)
		}
	}
}

// stuck is a machine whose models keep their memory.
type stuck struct{ measure.Machine }

func (s stuck) NewRunner(ctx context.Context, m *weights.Model, layout *arch.Layout, longest int) (measure.Runner, error) {
	r, err := s.Machine.NewRunner(ctx, m, layout, longest)
	return stuckRunner{r}, err
}

type stuckRunner struct{ measure.Runner }

func (stuckRunner) Rotate(context.Context, []measure.Runner) error { return nil }

// TestWholeChecksResults: a model that computes other tokens in other memory makes the step invalid.
func TestWholeChecksResults(t *testing.T) {
	before, after := wholeModels(t)
	m := stuck{measure.Simulated(power.DefaultSim())}
	defer m.Close()
	r, err := measure.Whole(t.Context(), m, before, after, measure.WholeOptions{Batches: []int{4}, Prompt: -1, Meter: power.Options{Time: time.Minute}})
	testmodel.OK(t, err)
	if s := r.Steps[0]; s.Run.Valid || r.Holds(false) || !slices.ContainsFunc(r.Invalid, func(w string) bool {
		return strings.Contains(w, "output computed different tokens after the models exchanged their memory")
	}) {
		t.Errorf("%d blocks, invalid: %q", len(s.Run.Blocks), r.Invalid)
	}
}
