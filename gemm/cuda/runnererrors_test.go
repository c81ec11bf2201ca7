package cuda_test

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/runner"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestRunnerNamesTheLayer: the first layer with outputs that are not finite is named.
func TestRunnerNamesTheLayer(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on := newTiny(t, "llama-tiny", "", weights.F32).mustLoad(t, card.Open(t), runner.Options{})
	checks := 0
	card.Ran(func(l cuda.FakeLaunch) {
		if l.Name == "check_fp32" {
			if checks++; checks == 3 || checks == 4 { // of four linear layers of a block
				card.Memory(address(l, "flag"), 4)[0] = 1
			}
		}
	})
	_, err := on.Pass(t.Context(), sequences, nil)
	testmodel.WantError(t, err, `block 0, sequences from 0 on: tensor "model.layers.0.mlp.gate_proj.weight": the layer's outputs are not finite`)
	card.Ran(func(l cuda.FakeLaunch) {
		if l.Name == "loss" { // of the second token of the second sequence
			binary.LittleEndian.PutUint64(card.Memory(address(l, "nats"), 80)[8*3:], math.Float64bits(math.Inf(1)))
		}
	})
	_, err = on.Pass(t.Context(), sequences, nil)
	testmodel.WantError(t, err, "the loss in sequence 1 at position 0 is not finite")
}

// TestObserveAfterAFailure: kernels of statistics that were not found are freed and loaded again later.
func TestObserveAfterAFailure(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on := newTiny(t, "llama-tiny", "", weights.F32).mustLoad(t, card.Open(t), runner.Options{Exact: true})
	before := card.Kinds()["module"]
	o := runner.Observation{Each: func(runner.Gram) error { return nil }}
	for after := range 3 { // kernels
		card.Fail("cuModuleGetFunction", after)
		_, err := on.Observe(t.Context(), sequences, o, nil)
		testmodel.WantError(t, err, "gram.cu: kernel gram_")
		card.Heal("cuModuleGetFunction")
		if n := card.Kinds()["module"]; n != before {
			t.Errorf("%d modules, %d before", n, before)
		}
	}
	pass, err := on.Observe(t.Context(), sequences, o, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, pass.Close())
}

// TestClosedIsRefused: using a closed pass or model is an error, and no kernel gets its memory.
func TestClosedIsRefused(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	on, err := newTiny(t, "llama-tiny", "", weights.F32).load(t.Context(), card.Open(t), runner.Options{Exact: true})
	testmodel.OK(t, err)
	open, err := on.Pass(t.Context(), sequences, nil)
	testmodel.OK(t, err)
	closed, err := on.Pass(t.Context(), sequences, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, closed.Close())
	card.Launches()
	refused := func(p, reference *runner.Pass, want string) {
		t.Helper()
		_, err := p.Divergence(t.Context(), reference)
		testmodel.WantError(t, err, want)
	}
	refused(open, closed, "the pass was closed")
	refused(closed, open, "the pass was closed")
	_, err = closed.Logits(t.Context())
	testmodel.WantError(t, err, "the pass was closed")
	_, _, err = closed.Changed(t.Context(), nil)
	testmodel.WantError(t, err, "the pass was closed")
	testmodel.WantError(t, closed.PerLayer(t.Context(), nil, nil), "the pass was closed")
	testmodel.OK(t, on.Close())
	refused(open, open, "the model was closed")
	_, err = on.Pass(t.Context(), sequences, nil)
	testmodel.WantError(t, err, "the model was closed")
	_, err = on.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 2}, nil)
	testmodel.WantError(t, err, "s: the model was closed")
	_, err = on.Observe(t.Context(), sequences, runner.Observation{}, nil)
	testmodel.WantError(t, err, "the model was closed")
	testmodel.OK(t, open.Close())
	if n := len(card.Launches()); n > 0 {
		t.Errorf("%d launches", n)
	}
}

// TestRunnerOnLessSharedMemory: heads of 256 channels run on a card with 99 KiB of shared memory, as served. The kernels of
// any head size have no room there, and the error says so.
func TestRunnerOnLessSharedMemory(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	card.Ada()
	device := card.Open(t)
	m := newTiny(t, "llama-tiny", `{"head_dim": 256}`, weights.BF16)
	on := m.mustLoad(t, device, runner.Options{Resident: true})
	pass, err := on.Pass(t.Context(), sequences, nil)
	testmodel.OK(t, err)
	testmodel.OK(t, pass.Close())
	_, err = m.load(t.Context(), device, runner.Options{Exact: true})
	testmodel.WantError(t, err, "kernel attend_rows_fp32: no kernel for this size on Fake: a block needs 101 KiB of shared memory: ")
	if !errors.Is(err, cuda.ErrNoKernel) {
		t.Error(err)
	}
}

// TestSizesWithoutAKernel: sizes beyond the kernels' limits are refused before the blocks are loaded, and nothing stays on
// the card.
func TestSizesWithoutAKernel(t *testing.T) {
	for _, c := range []struct{ model, changes, want string }{
		{"llama-tiny", `{"head_dim": 520}`, `tensor "model.layers.0.self_attn.o_proj.weight": no kernel for this size: its heads have 520 value channels, but at most 512 are supported`},
		{"deepseek_v3-tiny", `{"n_routed_experts": 130, "n_group": 65, "topk_group": 2}`, `gate.weight": no kernel for this size: it routes to 130 experts in 65 groups, but at most 4096 experts in 64 groups of up to 256 are supported`},
	} {
		card := cuda.NewFakeCard(t, 1<<30)
		device := card.Open(t)
		before := card.Kinds()
		_, err := newTiny(t, c.model, c.changes, weights.F32).load(t.Context(), device, runner.Options{})
		testmodel.WantError(t, err, c.want)
		if after := card.Kinds(); !errors.Is(err, cuda.ErrNoKernel) || !maps.Equal(before, after) {
			t.Errorf("%v; alive: %v, before: %v", err, after, before)
		}
	}
}

func TestRunnerRefuses(t *testing.T) {
	card := cuda.NewFakeCard(t, 1<<30)
	device := card.Open(t)
	m := newTiny(t, "llama-tiny", "", weights.F32)
	before := card.Kinds()
	_, err := m.load(t.Context(), device, runner.Options{Longest: 65})
	testmodel.WantError(t, err, "sequences of 65 tokens: the model's limit is 64 tokens")
	_, err = m.load(t.Context(), device, runner.Options{Longest: -1})
	testmodel.WantError(t, err, "sequences of -1 tokens: give at least 1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.load(ctx, device, runner.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if after := card.Kinds(); !maps.Equal(before, after) {
		t.Errorf("alive: %v, before: %v", after, before)
	}
	on := m.mustLoad(t, device, runner.Options{Longest: 4})
	for _, c := range []struct {
		tokens [][]int32
		want   string
	}{
		{nil, "no sequences of tokens"},
		{[][]int32{{1}}, "sequence 0 has 1 token:"},
		{[][]int32{{1, 2}, {1, 128}}, "sequence 1, position 1: token 128 is outside the vocabulary"},
		{[][]int32{{1, 2}, {1, 2, 3, 4, 5}}, "sequence 1 has 5 tokens, but the model was loaded for at most 4: increase Options.Longest"},
	} {
		_, err := on.Pass(t.Context(), c.tokens, nil)
		testmodel.WantError(t, err, c.want)
	}
	for _, w := range []runner.Work{{Context: 1}, {Sequences: 1}, {Sequences: 1, Context: 5}} {
		_, err := on.NewStep(t.Context(), "s", w, nil)
		testmodel.WantError(t, err, "s: ", "the model was loaded for sequences of 1 to 4 tokens")
	}
	_, err = on.NewStep(t.Context(), "s", runner.Work{Sequences: 65536, Context: 2, Decode: true}, nil)
	testmodel.WantError(t, err, "s: decode, batch 65536, context 2: a step can have at most 65535 sequences")
	_, err = on.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 2, Linear: true}, nil)
	testmodel.WantError(t, err, "s: a step with only linear layers")
	like, err := on.NewStep(t.Context(), "s", runner.Work{Sequences: 1, Context: 2}, nil)
	testmodel.OK(t, err)
	_, err = on.NewStep(t.Context(), "s", runner.Work{Sequences: 2, Context: 2}, like)
	testmodel.WantError(t, err, "s: prefill, 2 × 2 tokens cannot use the buffers of prefill, 1 × 2 tokens")
	testmodel.OK(t, like.Close())
	planted := errors.New("enough")
	if _, err := on.Pass(t.Context(), [][]int32{{1, 2}}, func(done, _ int) error { return planted }); !errors.Is(err, planted) {
		t.Error(err)
	}
	if _, err := on.Pass(ctx, [][]int32{{1, 2}}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	a, err := on.Pass(t.Context(), [][]int32{{1, 2}}, nil)
	testmodel.OK(t, err)
	defer a.Close()
	b, err := on.Pass(t.Context(), [][]int32{{1, 3}}, nil)
	testmodel.OK(t, err)
	defer b.Close()
	_, err = a.Divergence(t.Context(), b)
	testmodel.WantError(t, err, "passes with the same tokens")
	card.NoCompiler()
	if _, err := m.load(t.Context(), device, runner.Options{}); !errors.Is(err, cuda.ErrNoCompiler) {
		t.Error(err)
	}
}

// Whichever call fails, at any time, everything is freed and an error is returned.
func TestRunnerIsFreedAfterFailures(t *testing.T) {
	for _, name := range []string{"llama-tiny", "mixtral-tiny"} {
		m := newTiny(t, name, `{"num_hidden_layers": 1}`, weights.BF16)
		for _, call := range []string{"cuMemAlloc", "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cublasLtMatmul", "cublasLtMatmulDescCreate",
			"cublasLtLayoutCreate", "cuCtxSynchronize", "nvrtcCompileProgram", "cuStreamEndCapture", "cuGraphInstantiate"} {
			failures := 0
			for after := 0; ; after += 1 + after/8 {
				card := cuda.NewFakeCard(t, 1<<30)
				device := card.Open(t)
				before := card.Kinds()
				card.Fail(call, after)
				err := m.useOnce(t.Context(), device)
				card.Heal(call)
				if after := card.Kinds(); after["memory"] != before["memory"] || after["module"]+after["exec"]+after["desc"]+after["layout"]+after["program"]+after["graph"] != 0 {
					t.Errorf("%s: %s: alive: %v, before: %v", name, call, after, before)
				}
				if card.Failures() == 0 {
					testmodel.OK(t, err)
					break
				}
				failures++
				if call != "cublasLtMatmul" && err == nil { // a kernel that fails while it is timed is skipped
					t.Errorf("%s: %s failed after %d calls and nobody noticed", name, call, after)
				}
			}
			if failures == 0 {
				t.Errorf("%s was never called", call)
			}
		}
	}
}

// useOnce loads a model, runs a pass and a step, and closes all.
func (m tiny) useOnce(ctx context.Context, d *cuda.Device) (err error) {
	on, err := m.load(ctx, d, runner.Options{Resident: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	pass, err := on.Pass(ctx, sequences, nil)
	if err != nil {
		return err
	}
	if err := pass.Close(); err != nil {
		return err
	}
	s, err := on.NewStep(ctx, "step", runner.Work{Sequences: 2, Context: 4, Decode: true}, nil)
	if err != nil {
		return err
	}
	return s.Close()
}
