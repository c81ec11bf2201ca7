package card

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestPrintWhole: the source's copy gives the resolution of energy and of time. An unknown share is not printed as 0.
// A request names the context at which its output was decoded.
func TestPrintWhole(t *testing.T) {
	step := measure.WholeStep{Phase: "decode", Batch: 16, Context: 1024, Tokens: 16, Relative: 0.95, Interval: []float64{0.94, 0.96},
		RelativeTime: 1.002, TimeInterval: []float64{1.001, 1.003}, Before: measure.StepCost{Joules: 0.09, Watts: 500, PerSecond: 400},
		After: measure.StepCost{Joules: 0.085, Watts: 480, PerSecond: 399}, Run: &power.Result{Header: power.Header{Valid: true, Resolvable: 0.004}}}
	step.Run.Null = power.Comparison{TimeInterval: []float64{1.0037, 1.0067}}
	var text bytes.Buffer
	PrintWhole(&text, &measure.WholeReport{GPU: "Card", Steps: []measure.WholeStep{step},
		Requests: []measure.Request{{Batch: 16, Context: 1024, Prompt: 4096, Output: 256, PerOutputBefore: 0.2, PerOutputAfter: 0.19, Relative: 0.95, Interval: []float64{0.93, 0.97}}}})
	got := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{"effects below 0.40 % of energy or 0.67 % of time are not resolved", "batch 16, decoded at context 1024: 200 → 190 mJ per output token (−5.0 %, 95 %: −7.00 … −3.00 %)", "500, 480 –"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// TestWithoutWhole: an error that only whole models cause advises measuring the linear layers. If no layer was
// measured, the report says so.
func TestWithoutWhole(t *testing.T) {
	for err, want := range map[error]string{
		cuda.ErrNoCompiler:   "no usable CUDA compiler (NVRTC): leave --whole out to measure the linear layers alone",
		decoder.ErrNoForward: "no forward pass: leave --whole out to measure the linear layers alone",
		cuda.ErrOutOfMemory:  "out of GPU memory",
	} {
		if got := withoutWhole(err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if withoutWhole(nil) != nil {
		t.Error("an error without a reason")
	}
}

func TestPrintNothingMeasured(t *testing.T) {
	var text bytes.Buffer
	PrintModels(&text, &measure.ModelReport{Cards: []measure.CardEnergy{{ModelEnergy: &measure.ModelEnergy{GPU: "Card"}}}}, "")
	if want := "energy: not measured, because no linear layer"; !strings.HasPrefix(text.String(), want) {
		t.Errorf("%q", text.String())
	}
}
