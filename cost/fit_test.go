package cost

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestBuiltInFit: a fit to the series of a built-in calibration gives its models, their quality and the responses.
func TestBuiltInFit(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	for _, name := range Calibrations() {
		c, err := FindCalibration(name)
		if err != nil {
			t.Fatal(err)
		}
		again := &Calibration{Card: c.Card, Facts: c.Facts, Series: append([]Series{}, c.Series...)}
		if err := again.Fit(func(typ arith.Type) bool { return c.model(typ, false).Swapped }, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Models, again.Models); diff != "" {
			t.Errorf("%s: models of the file (-) and fitted to its series (+):\n%s", name, diff)
		}
		for i := range c.Series {
			if diff := cmp.Diff(c.Series[i].Response, again.Series[i].Response); diff != "" {
				t.Errorf("%s: response %d of the file (-) and today (+):\n%s", name, i, diff)
			}
		}
	}
}
