package model

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// random writes a small random model into a new folder. change may edit its tensors.
func random(t *testing.T, name string, change func(tensor string, data []byte)) (dir string) {
	t.Helper()
	dir = testmodel.Random(t, name, 1).Dir
	testmodel.Edit(t, dir, func(info weights.Info, data []byte) { change(info.Name, data) })
	return dir
}

// randomTokens writes a file of sequences of 16 tokens: some for calibration, and 6 for evaluation.
func randomTokens(t *testing.T, calibration int) (path string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	infos := []weights.Info{
		{Name: tokens.Calibration, DType: weights.U8, Shape: []int{calibration, 16}},
		{Name: tokens.Evaluation, DType: weights.U8, Shape: []int{6, 16}},
	}
	data, _, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range (calibration + 6) * 16 {
		data = append(data, byte(rng.IntN(96)))
	}
	path = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// quickly are passes that a search tries in little time.
const quickly = "prune,trellis,compensate=0.01"

// TestWithoutDevice: errors of the GPU advise running on the CPU. Other errors do not change.
func TestWithoutDevice(t *testing.T) {
	for err, want := range map[error]string{
		cuda.ErrNoGPU:                            "no usable NVIDIA GPU; or leave --device out to run the model on the CPU",
		cuda.ErrNoCompiler:                       "no usable CUDA compiler (NVRTC); or leave --device out to run the model on the CPU",
		fmt.Errorf("x: %w", cuda.ErrOutOfMemory): "x: out of GPU memory: stop other programs on the GPU, or leave --device out to run the model on the CPU",
		cuda.ErrNoKernel:                         "no kernel for this size; or leave --device out to run the model on the CPU",
		errors.New("x"):                          "x",
	} {
		if got := withoutDevice(err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if withoutDevice(nil) != nil {
		t.Error("an error without a reason")
	}
}

func TestModelsWhoseInputsAreNotFinite(t *testing.T) {
	tokens := randomTokens(t, 8)
	bf16 := func(data []byte, v float32) {
		for i := range len(data) / 2 {
			binary.LittleEndian.PutUint16(data[2*i:], uint16(math.Float32bits(v)>>16))
		}
	}
	for name, test := range map[string]struct {
		tensor string
		change func(data []byte)
		want   []string
	}{
		"NaN": {"model.layers.0.mlp.up_proj.weight", func(data []byte) { bf16(data[:2], float32(math.NaN())) },
			[]string{"block 0", "mlp.down_proj.weight", "not finite: look for NaN, infinite or very large weights"}},
		"large": {"model.layers.1.input_layernorm.weight", func(data []byte) { bf16(data, 1e30) },
			[]string{"block 1", "self_attn.q_proj.weight", "whose square exceeds float32: look for very large weights"}},
		"infinite": {"model.norm.weight", func(data []byte) { bf16(data, float32(math.Inf(1))) }, []string{"lm_head.weight", "not finite"}},
	} {
		model := random(t, "llama-tiny", func(tensor string, data []byte) {
			if tensor == test.tensor {
				test.change(data)
			}
		})
		out := filepath.Join(t.TempDir(), "out")
		stdout, err := run(t.Context(), "convert", "--tokens", tokens, model, out)
		if err == nil || exit.Status(err) != exit.Failed || len(stdout) > 0 {
			t.Errorf("%s: %v, %q", name, err, stdout)
			continue
		}
		for _, want := range append(test.want, "on the calibration tokens of "+tokens) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the message is %q, which lacks %q", name, err, want)
			}
		}
		for _, path := range []string{out, besideOut(out), out + ".partial"} {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s exists (%v)", name, path, err)
			}
		}
	}
}

// TestSearchOfOddModels: layers of zeros, and layers whose inputs are always zero, can be searched. Of four sequences
// one is held out, which gives no interval.
func TestSearchOfOddModels(t *testing.T) {
	if testing.Short() {
		t.Skip("three searches")
	}
	for name, family := range map[string]string{
		"model.layers.1.mlp.down_proj.weight":    "llama-tiny",
		"model.layers.0.self_attn.v_proj.weight": "llama-tiny",
		"transformer.h.1.mlp.c_fc.weight":        "gpt2-tiny",
	} {
		model := random(t, family, func(tensor string, data []byte) {
			if tensor == name {
				clear(data)
			}
		})
		out, tokens := filepath.Join(t.TempDir(), "out"), randomTokens(t, 4)
		var got convertJSON
		stdout, err := run(t.Context(), "convert", "--tokens", tokens, "--passes", quickly, "--max-loss", "2%", "--json", model, out)
		if err != nil && !errors.Is(err, exit.ErrShort) { // four sequences of random tokens may miss the budget
			t.Fatal(err)
		}
		if err := json.Unmarshal(stdout, &got); err != nil {
			t.Fatal(err)
		}
		if got.Found == nil || got.Found.Best() == nil || got.Loss == nil {
			t.Errorf("%s, zeros in %q: found %+v, loss %+v", family, name, got.Found, got.Loss)
			continue
		}
		for _, trial := range got.Found.Trials {
			if trial.Interval != nil {
				t.Errorf("%s, zeros in %q: one sequence gives an interval: %+v", family, name, trial)
			}
		}
		document(t, new(any), "verify", "--json", model, out)
		if _, err := os.Lstat(besideOut(out)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, zeros in %q: the search's folder is left (%v)", family, name, err)
		}
	}
}

func TestBudgetIsKeptOnEvaluationTokens(t *testing.T) {
	of := func(rise float64, budget *float64) *transform.Conversion {
		return &transform.Conversion{Plan: &plan.Plan{Request: plan.Request{MaxLoss: budget}},
			Loss: &evaluate.Comparison{Comparison: forward.Comparison{Difference: rise}}}
	}
	unknown := of(0, nats(0.001))
	unknown.Loss = nil
	if err := errors.Join(overBudget("out", of(0.0009, nats(0.001))), overBudget("out", of(1, nil)), overBudget("out", unknown)); err != nil {
		t.Error(err)
	}
	err := overBudget("out", of(0.002, nats(0.001)))
	if !errors.Is(err, exit.ErrShort) || !strings.Contains(err.Error(), "out: perplexity rises by 0.2002 %, more than the 0.1 % allowed") || !strings.Contains(err.Error(), "--max-loss") {
		t.Errorf("%v", err)
	}
}

// TestVerifyKeepsTheConversionsBudget: without --max-loss, the limit is that of the conversion.
func TestVerifyKeepsTheConversionsBudget(t *testing.T) {
	of := func(rise float64, budget *float64) *verifyJSON {
		return &verifyJSON{Report: &verify.Report{Plan: &plan.Plan{Request: plan.Request{MaxLoss: budget}}}, Loss: &lossJSON{Difference: rise}}
	}
	for name, test := range map[string]struct {
		r     *verifyJSON
		limit *float64
		above bool
	}{
		"within the budget":        {of(0.0009, nats(0.001)), nil, false},
		"above the budget":         {of(0.002, nats(0.001)), nil, true},
		"--max-loss is larger":     {of(0.002, nats(0.001)), nats(0.003), false},
		"--max-loss is smaller":    {of(0.0009, nats(0.001)), nats(0.0005), true},
		"no budget":                {of(1, nil), nil, false},
		"--max-loss, no budget":    {of(1, nil), nats(0.1), true},
		"no loss":                  {&verifyJSON{Report: of(0, nats(0.001)).Report}, nats(0.001), false},
		"no plan":                  {&verifyJSON{Report: &verify.Report{}, Loss: &lossJSON{Difference: 1}}, nil, false},
		"the loss is not a number": {of(math.NaN(), nats(0.001)), nil, true},
	} {
		if err := test.r.aboveMaxLoss("out", test.limit); errors.Is(err, exit.ErrShort) != test.above {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWithinMaxLoss: a rise within the limit is told, with the interval if that goes beyond the limit.
func TestWithinMaxLoss(t *testing.T) {
	of := func(rise, high float64) forward.Comparison {
		return forward.Comparison{Difference: rise, Low: 2*rise - high, High: high}
	}
	const within = "perplexity stays within the allowed rise of 0.1 %"
	for _, test := range []struct {
		rise  forward.Comparison
		limit *float64
		want  string
	}{
		{of(0.0005, 0.0009), nats(0.001), within},
		{of(0.0005, 0.002), nats(0.001), within + "; the 95 % interval reaches +0.200 %, so a larger rise is possible: give more sequences for a narrower interval"},
		{of(0.0005, math.Inf(1)), nats(0.001), within},
		{of(0.002, 0.003), nats(0.001), ""},
		{of(0.0005, 0.0009), nil, ""},
	} {
		if got := withinMaxLoss(test.rise, test.limit); got != test.want {
			t.Errorf("%v: %q, want %q", test.rise, got, test.want)
		}
	}
}

// TestInterruptedSearchSaysSo: an interrupted search says where its results are and how to continue.
func TestInterruptedSearchSaysSo(t *testing.T) {
	model, out := random(t, "llama-tiny", func(string, []byte) {}), filepath.Join(t.TempDir(), "out")
	tokens := randomTokens(t, 8)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := besideOut(out)
	if err := os.MkdirAll(filepath.Join(dir, "search"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := run(ctx, "convert", "--tokens", tokens, model, out)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the search's intermediate results are in "+dir+"; run the same command again to continue") {
		t.Errorf("%v", err)
	}
}
