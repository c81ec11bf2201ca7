package forward_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestReferenceLoss holds losses against those that transformers and PyTorch measured. These
// multiplied in BF16, so that the last digits differ.
func TestReferenceLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	t.Run("demo", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "model")
		if err := demo.Write(dir); err != nil {
			t.Fatal(err)
		}
		holdAgainstReference(t, dir)
	})
	t.Run("llama-17m", func(t *testing.T) {
		dir := filepath.Join("..", "..", "..", "shared", "models", "llama-17m")
		if _, err := os.Stat(dir); err != nil {
			t.Skipf("the reference models are not here: %v", err)
		}
		if !cpu.X86.HasAVX512F {
			t.Skip("takes hours without AVX-512")
		}
		holdAgainstReference(t, dir)
	})
}

func holdAgainstReference(t *testing.T, dir string) {
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
	scores, err := d.Run(context.Background(), forward.Stored(m), evaluation.Sequences, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("loss %.7f, reference %.7f", scores.Loss(), reference.Loss)
	if off := math.Abs(scores.Loss() - reference.Loss); !(off <= 5e-5) {
		t.Errorf("loss %v, the reference says %v: off by %.2g", scores.Loss(), reference.Loss, off)
	}
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
