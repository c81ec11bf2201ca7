package forward_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/cpu"
	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestReferenceLoss compares losses with measurements by transformers and PyTorch. PyTorch multiplied in BF16, so the last digits
// differ. The small model runs on all its evaluation tokens. Those of the large one are many: an eighth of them must agree with
// the whole within three standard errors, and the plain implementation says the last digits of a few.
func TestReferenceLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	t.Run("demo", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "model")
		if err := demo.Write(dir); err != nil {
			t.Fatal(err)
		}
		scores, reference := referenceLoss(t, dir, 1)
		if off := math.Abs(scores.Loss() - reference); !(off <= 5e-5) {
			t.Errorf("loss %v, the reference says %v: off by %.2g", scores.Loss(), reference, off)
		}
	})
	t.Run("llama-17m", func(t *testing.T) {
		dir := filepath.Join("..", "..", "..", "shared", "models", "llama-17m")
		if _, err := os.Stat(dir); err != nil {
			t.Skipf("the reference models are not here: %v", err)
		}
		if !cpu.X86.HasAVX512F {
			t.Skip("takes hours without AVX-512")
		}
		scores, reference := referenceLoss(t, dir, 8)
		loss, deviation := stat.MeanStdDev(scores.Sequences(), nil)
		if off, most := math.Abs(loss-reference), 3*stat.StdErr(deviation, float64(len(scores.Nats))); !(off <= most) {
			t.Errorf("loss %v, the reference says %v: off by %.2g, more than %.2g", loss, reference, off, most)
		}
		m, d := open(t, dir)
		holdAgainstPlain(t, m, d)
	})
}

// referenceLoss runs a model on some evaluation sequences, one of so many, and reads what was measured on all.
func referenceLoss(t *testing.T, dir string, every int) (scores *forward.Scores, loss float64) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	var reference struct {
		Loss float64 `json:"loss_fp32"`
	}
	if err := json.Unmarshal(data, &reference); err != nil {
		t.Fatal(err)
	}
	m, d := open(t, dir)
	file, err := tokens.Open(tokens.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	_, evaluation, _, err := file.Split()
	if err != nil {
		t.Fatal(err)
	}
	var part [][]int32
	for i := 0; i < len(evaluation.Sequences); i += every {
		part = append(part, evaluation.Sequences[i])
	}
	if scores, err = d.Run(context.Background(), forward.Stored(m), part, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("loss %.7f, reference %.7f", scores.Loss(), reference.Loss)
	return scores, reference.Loss
}

// open opens a folder's model and makes its decoder.
func open(t testing.TB, dir string) (*weights.Model, *forward.Decoder) {
	t.Helper()
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	f, err := arch.Detect(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := f.Resolve(m.Config, m.Infos())
	if err != nil {
		t.Fatal(err)
	}
	d, err := forward.New(m, layout)
	if err != nil {
		t.Fatal(err)
	}
	return m, d
}
