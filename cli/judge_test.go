package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// document runs a command, and decodes the JSON that it prints.
func document(t *testing.T, v any, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := Main(append([]string{"lowtoggle"}, args...), &stdout, &stderr); status != exitDone {
		t.Fatalf("%v: status %d: %s", args, status, stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), v); err != nil {
		t.Fatal(err)
	}
}

// TestDemoLoss: eval finds what the model's makers measured, and verify what eval finds.
func TestDemoLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("four passes over 32 000 tokens")
	}
	dir := t.TempDir()
	model, out := filepath.Join(dir, "model"), filepath.Join(dir, "out")
	if err := demo.Write(model); err != nil {
		t.Fatal(err)
	}
	var reference struct {
		Loss float64 `json:"loss_fp32"`
	}
	data, err := os.ReadFile(filepath.Join(model, "reference.json"))
	if err == nil {
		err = json.Unmarshal(data, &reference)
	}
	if err != nil {
		t.Fatal(err)
	}
	document(t, new(any), "convert", model, out, "--passes", "round=5", "--json")
	var eval struct{ Models [2]evalJSON }
	document(t, &eval, "eval", model, out, "--json")
	before, after := eval.Models[0], eval.Models[1]
	if math.Abs(before.Loss-reference.Loss) > 1e-4 || *before.Perplexity != math.Exp(before.Loss) {
		t.Errorf("loss %v and perplexity %v, the makers measured %v", before.Loss, *before.Perplexity, reference.Loss)
	}
	against := after.Against
	if rise := after.Loss - before.Loss; math.Abs(against.LossDifference-rise) > 1e-12 || rise <= 0 || math.Abs(*against.PerplexityRatio*(*before.Perplexity)-*after.Perplexity) > 1e-9 {
		t.Errorf("loss %v after %v, perplexity %v after %v, and %+v", after.Loss, before.Loss, *after.Perplexity, *before.Perplexity, *against)
	}
	if i := against.Interval; i[0] >= against.LossDifference || i[1] <= against.LossDifference {
		t.Errorf("the interval %v is not around %v", *i, against.LossDifference)
	}
	var verify struct{ Loss lossJSON }
	document(t, &verify, "verify", model, out, "--tokens", tokens.Path(model), "--json")
	if l := verify.Loss; l.Before != before.Loss || l.After != after.Loss || l.Difference != against.LossDifference ||
		*l.Interval != *against.Interval || *l.PerplexityRatio != *against.PerplexityRatio || l.Tokens != after.Tokens || l.Part != after.Part {
		t.Errorf("verify says %+v, eval %+v of %+v", l, *against, after)
	}
}

func TestPartOf(t *testing.T) {
	part := func(name string, n int) tokens.Part {
		return tokens.Part{Name: name, N: n, T: 8, Sequences: make([][]int32, n)}
	}
	both := &tokens.File{Path: "f", Parts: []tokens.Part{part("eval", 3), part("train", 2)}}
	for purpose, n := range map[string]int{evaluationPart: 3, calibrationPart: 2} {
		p, err := partOf(both, purpose)
		if err != nil || p.N != n || p.purpose != purpose || p.predicted() != 7*n || p.file != "f" || p.split == "" {
			t.Errorf("%s: %+v, %v", purpose, p, err)
		}
	}
	one := &tokens.File{Path: "f", Parts: both.Parts[:1]}
	if _, err := partOf(one, calibrationPart); err == nil || !strings.HasSuffix(err.Error(), ": name a tensor calibration") {
		t.Errorf("a part that is missing: %v", err)
	}
}

// TestEpilogueTakesShiftsOff: each output's own, whichever way the weights lie.
func TestEpilogueTakesShiftsOff(t *testing.T) {
	for axis, shifts := range [][]float32{{10, 20}, {10, 20, 40}} {
		m := modelOf(t, map[string][]float32{"w": {1, 2, 3, 4, 5, 6}, "w.lowtoggle_shift": shifts, "b": {7}})
		layout := &arch.Layout{Claims: map[string]*arch.Claim{"w": {OutAxis: axis}}}
		w := epilogue{forward.Stored(m), m, layout}
		want := [][]float32{{-9, -8, -7, -16, -15, -14}, {-9, -18, -37, -6, -15, -34}}[axis]
		if have, err := w.Tensor(t.Context(), "w"); err != nil || !slices.Equal(have, want) {
			t.Errorf("outputs along axis %d: %v, %v, want %v", axis, have, err, want)
		}
		if have, err := w.Tensor(t.Context(), "b"); err != nil || !slices.Equal(have, []float32{7}) {
			t.Errorf("no shift: %v, %v", have, err)
		}
	}
	m := modelOf(t, map[string][]float32{"w": {1, 2, 3}, "w.lowtoggle_shift": {1, 2}})
	if _, err := (epilogue{forward.Stored(m), m, nil}).Tensor(t.Context(), "w"); err == nil || !strings.Contains(err.Error(), "has 2 shifts for 3 weights") {
		t.Errorf("two shifts for three weights: %v", err)
	}
}

// modelOf is a model of vectors.
func modelOf(t *testing.T, tensors map[string][]float32) *weights.Model {
	t.Helper()
	var infos []weights.Info
	var data []byte
	f, _ := weights.F32.Format()
	for name, v := range tensors {
		infos = append(infos, weights.Info{Name: name, DType: weights.F32, Shape: []int{len(v)}})
		b := make([]byte, 4*len(v))
		f.Encode(b, v)
		data = append(data, b...)
	}
	head, _, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, append(head, data...), 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestJudgeEnds: a context that ends ends it, and its error says so.
func TestJudgeEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := demo.Write(dir); err != nil {
		t.Fatal(err)
	}
	q := &evaluation{paths: []string{dir}, purpose: calibrationPart}
	defer q.Close()
	if err := q.open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	j, steps := q.judges[0], 0
	j.step = func() {
		steps++
		cancel()
	}
	if _, err := j.scores(ctx, j.stored(q.models[0]), nil); err == nil || ctx.Err() == nil || !strings.HasSuffix(err.Error(), context.Canceled.Error()) {
		t.Errorf("ended with %v", err)
	}
	if steps != 1 {
		t.Errorf("%d blocks were run, one before it was ended", steps)
	}
}
