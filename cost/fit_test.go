package cost

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestBuiltInFit: a fit to the series of a built-in calibration gives its models, their quality and the responses.
// The shares of lags, which are rounded, are nearly equal. Conversions therefore keep their bytes.
func TestBuiltInFit(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	for _, card := range Calibrations() {
		c, err := FindCalibration(card)
		if err != nil {
			t.Fatal(err)
		}
		again := &Calibration{Card: c.Card, Facts: c.Facts, Series: append([]Series{}, c.Series...)}
		if err := again.Fit(func(typ arith.Type) bool { return c.model(typ, false).Swapped }, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Models, again.Models); diff != "" {
			t.Errorf("%s: models of the file (-) and fitted to its series (+):\n%s", card, diff)
		}
		have, want := again.Facts.LagShares, c.Facts.LagShares
		for name, off := range map[string]float64{"streaming": have.Streaming - want.Streaming, "line": have.Line - want.Line,
			"element": have.Element - want.Element, "sector": have.Sector - want.Sector} {
			if math.Abs(off) > 0.005 {
				t.Errorf("%s: the share of the %s lag is %v off", card, name, off)
			}
		}
		for i := range c.Series {
			if diff := cmp.Diff(c.Series[i].Response, again.Series[i].Response); diff != "" {
				t.Errorf("%s: response %d of the file (-) and today (+):\n%s", card, i, diff)
			}
		}
	}
}
