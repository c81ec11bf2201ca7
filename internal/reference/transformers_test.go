package reference

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// recorded holds outputs of transformers in float64, which bench/runtimes.py wrote to testdata.
type recorded struct {
	Transformers, Torch string
	Rows                [][]float64
}

// TestTransformersComputeTheSame: the reference model agrees with transformers, the runtime for which most models are
// published.
func TestTransformersComputeTheSame(t *testing.T) {
	for _, name := range synth.Names() {
		if !strings.HasSuffix(name, "-tiny") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			js, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("nothing is recorded: python3 bench/runtimes.py does it")
			}
			if err != nil {
				t.Fatal(err)
			}
			var want recorded
			if err := json.Unmarshal(js, &want); err != nil {
				t.Fatal(err)
			}
			m := synthetic(t, name)
			got, err := Run(m, recordedInputs(t, m))
			if err != nil {
				t.Fatal(err)
			}
			if d := apart(want.Rows, got); !(d <= 1e-6) {
				t.Errorf("the outputs differ by %.2g from transformers %s", d, want.Transformers)
			}
		})
	}
}

// synthetic returns the recorded model.
func synthetic(t *testing.T, name string) *weights.Model {
	t.Helper()
	config, err := synth.Config(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), name)
	if err := synth.Folder(t.Context(), config, dir, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// apart returns the largest difference divided by the largest magnitude.
func apart(want, got [][]float64) float64 {
	if len(want) != len(got) {
		return math.Inf(1)
	}
	var diff, size float64
	for i := range want {
		if len(want[i]) != len(got[i]) {
			return math.Inf(1)
		}
		for k, v := range want[i] {
			diff, size = max(diff, math.Abs(v-got[i][k])), max(size, math.Abs(v))
		}
	}
	return diff / size
}

// recordedInputs returns the inputs of bench/runtimes.py.
func recordedInputs(t *testing.T, m *weights.Model) (in Inputs) {
	t.Helper()
	var config struct {
		Vocabulary int `json:"vocab_size"`
	}
	if err := json.Unmarshal(m.Config, &config); err != nil {
		t.Fatal(err)
	}
	for t := range 9 {
		in.Tokens = append(in.Tokens, int32((t*7+3)%max(1, config.Vocabulary)))
	}
	n, err := Values(m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		in.Values = append(in.Values, float64(i*7919%1009)/1009-0.5)
	}
	return in
}
