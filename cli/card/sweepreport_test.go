package card

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// TestSweepTableFits: settings are never shortened.
func TestSweepTableFits(t *testing.T) {
	clock := 1755.
	f := sweep.Figures{RelativeEnergy: 0.4, Interval: []float64{0.252, 1.6}, RelativeTime: 5.738, TimeInterval: []float64{0.153, 5.2},
		Watts: 1148, Clock: &clock, EDP: 3.469, GainMinusLoss: -4.342}
	r := &sweep.Result{GPU: "card", Predicted: true, Points: []sweep.Point{
		{Setting: sweep.Setting{Cap: 1200}, Predicted: true, Original: f, Converted: &f},
		{Setting: sweep.Setting{Clock: 1100}, Predicted: true, Extrapolated: true, Original: f, Converted: &f},
	}}
	var b bytes.Buffer
	new(sweepRequest{request: new(request)}).print(&b, r)
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(line)) - 1; n > term.Width {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	for _, want := range []string{"\n1200 W      pred.   original ", "\n1100 MHz  extrap.  converted "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
