package model

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/clitest"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// run runs one of the commands of this package, with flags first.
func run(ctx context.Context, args ...string) ([]byte, error) {
	return clitest.Run(ctx, []*cli.Command{Convert, Eval, Plan, Synth, Verify}, args...)
}

// document runs a command and decodes its JSON output.
func document(t *testing.T, v any, args ...string) {
	t.Helper()
	stdout, err := run(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	if err := json.Unmarshal(stdout, v); err != nil {
		t.Fatal(err)
	}
}

// TestDemoLoss: eval gives the loss that was measured after the model's training, and verify gives the same loss.
func TestDemoLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("a pass over 32 000 tokens")
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
	document(t, new(any), "convert", "--passes", "round=5", "--json", model, out)
	var eval struct{ Models [2]evalJSON }
	var whole evalJSON
	document(t, &whole, "eval", "--json", model)
	if math.Abs(whole.Loss-reference.Loss) > 1e-4 {
		t.Errorf("loss %v, the makers measured %v", whole.Loss, reference.Loss)
	}
	few := firstTokens(t, tokens.Path(model), 16)
	document(t, &eval, "eval", "--tokens", few, "--json", model, out)
	before, after := eval.Models[0], eval.Models[1]
	if *before.Perplexity != math.Exp(before.Loss) {
		t.Errorf("loss %v and perplexity %v", before.Loss, *before.Perplexity)
	}
	against := after.Against
	if rise := after.Loss - before.Loss; math.Abs(against.LossDifference-rise) > 1e-12 || rise <= 0 || math.Abs(*against.PerplexityRatio*(*before.Perplexity)-*after.Perplexity) > 1e-9 {
		t.Errorf("loss %v after %v, perplexity %v after %v, and %+v", after.Loss, before.Loss, *after.Perplexity, *before.Perplexity, *against)
	}
	if i := against.Interval; i[0] >= against.LossDifference || i[1] <= against.LossDifference {
		t.Errorf("the interval %v is not around %v", *i, against.LossDifference)
	}
	var verify struct{ Loss lossJSON }
	document(t, &verify, "verify", "--tokens", few, "--json", model, out)
	if l := verify.Loss; l.Before != before.Loss || l.After != after.Loss || l.Difference != against.LossDifference ||
		*l.Interval != *against.Interval || *l.PerplexityRatio != *against.PerplexityRatio || l.Tokens != after.Tokens || l.Part != after.Part {
		t.Errorf("verify says %+v, eval %+v of %+v", l, *against, after)
	}
}

// firstTokens returns a file with the first n sequences of each part of a token file.
func firstTokens(t *testing.T, path string, n int) string {
	t.Helper()
	file, err := tokens.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var infos []weights.Info
	data := map[string][]byte{}
	for _, part := range file.Parts {
		infos = append(infos, weights.Info{Name: part.Name, DType: weights.U8, Shape: []int{n, part.T}})
		for _, sequence := range part.Sequences[:n] {
			for _, id := range sequence {
				data[part.Name] = append(data[part.Name], byte(id))
			}
		}
	}
	all, placed, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range placed {
		all = append(all, data[info.Name]...)
	}
	few := filepath.Join(t.TempDir(), "few.safetensors")
	if err := os.WriteFile(few, all, 0o666); err != nil {
		t.Fatal(err)
	}
	return few
}

// TestScoreEnds: the end of a context ends a run with the context's error.
func TestScoreEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := demo.Write(dir); err != nil {
		t.Fatal(err)
	}
	q := &evaluation{paths: []string{dir}, purpose: tokens.Calibration}
	defer q.Close()
	if err := q.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, steps := q.scorers[0], 0
	s.Step = func() {
		steps++
		cancel()
	}
	if _, err := s.Score(ctx, q.models[0], nil); err == nil || ctx.Err() == nil || !strings.HasSuffix(err.Error(), context.Canceled.Error()) {
		t.Errorf("ended with %v", err)
	}
	if steps != 1 {
		t.Errorf("%d blocks were run, want 1", steps)
	}
}
