package card

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
)

func TestThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0.5112: "511 mJ", 1.2345: "1.23 J", 12.345: "12.3 J", 1234.5: "1234 J", 0.0099: "9.90 mJ", 998.4e-6: "998 µJ", 2.5e-9: "0.00 µJ"} {
		if have := threeDigits(v); have != want {
			t.Errorf("%v is %s, want %s", v, have, want)
		}
	}
}

// TestBelowCap: the line names the sources whose change differs from the table, and mentions others only if there are
// some besides the baseline.
func TestBelowCap(t *testing.T) {
	source := func(name string, relative, below float64) (p predict.Prediction) {
		p.Name, p.Relative, p.RelativeTime = name, relative, 1
		p.BelowCap = &cost.BelowCap{Relative: below, RelativeTime: 1}
		return p
	}
	base, out, same := source("m:", 1, 1), source("out:", 0.97, 0.95), source("zeros", 0.7, 0.7)
	const when, end = "on a lightly loaded card (prefill below its power cap)", "; not tested by a measurement. On a fully loaded card, the table applies"
	const changes = when + ", relative to random operands: energy of out: −5.0 %, time 0.0 %"
	const others = "; the other sources as in the table, within half a percentage point"
	for _, c := range []struct {
		compared bool
		all      []predict.Prediction
		want     string
	}{
		{true, []predict.Prediction{base, out}, changes + end},
		{false, []predict.Prediction{base, out}, changes + others + end},
		{true, []predict.Prediction{base, out, same}, changes + others + end},
		{false, []predict.Prediction{out}, changes + end},
		{true, []predict.Prediction{base, same}, when + ", energy and time change as in the table, within half a percentage point"},
		{false, []predict.Prediction{{}}, ""},
	} {
		f := predictRequest{}
		f.compared = c.compared
		if have := f.belowCap(c.all); have != c.want {
			t.Errorf("%v, %d sources:\n%s, want\n%s", c.compared, len(c.all), have, c.want)
		}
	}
}
