package card

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cli/term"
)

func TestMeasuredWords(t *testing.T) {
	for _, c := range []struct{ have, want string }{
		{term.Signed(1.234, 2), "+1.23"},
		{term.Signed(-1.234, 2), "−1.23"},
		{term.Signed(0, 2), "0.00"},
		{term.Signed(0.004, 2), "0.00"},
		{term.Signed(-0.004, 2), "0.00"},
		{term.Signed(math.Copysign(0, -1), 2), "0.00"},
		{term.Signed(0.005001, 2), "+0.01"},
		{term.Signed(-10.5, 0), "−10"},
		{term.Signed(0.4, 0), "0"},
		{term.Interval(nil), "–"},
		{term.Interval([]float64{0.951, 0.9655}), "−4.90 … −3.45 %"},
		{term.Interval([]float64{0.99999, 1.02}), "0.00 … +2.00 %"},
		{term.MeasuredChange(0.955, []float64{0.9, 1}), "−4.50 %"},
		{term.MeasuredChange(1, []float64{0.9, 1.1}), "0.00 %"},
		{term.MeasuredChange(0.955, nil), "−4.5 %"}, // of one reading, without an interval
		{siJoules(1), "1.000 J"},
		{siJoules(12.3456), "12.346 J"},
		{siJoules(0.0123), "12.300 mJ"},
		{siJoules(4.4e-5), "44.000 µJ"},
		{siJoules(0), "0.000 µJ"},
		{joulesBeside(0.98, 1.1), "0.980 J"},
		{joulesBeside(0.0011, 0.00098), "1100.000 µJ"},
		{benchName("normal(0,1)"), "normal(0,1)"},
		{benchName("normal(0, 1) (copy)"), "normal(0,1)(copy)"},
		{benchName("m:layer-12"), "m:layer_12"},
		{benchName("m-8:layer-12.weight"), "m-8:layer-12.weight"},
		{benchName("const(-1)"), "const(-1)"},
		{benchName("/models/my model:*.weight"), "_models_mymodel:*.weight"},
	} {
		if c.have != c.want {
			t.Errorf("%q, want %q", c.have, c.want)
		}
	}
}

// TestSigned: a number has its sign, unless it rounds to 0.
func TestSigned(t *testing.T) {
	form := regexp.MustCompile(`^[+−]?\d+(\.\d+)?$`)
	rapid.Check(t, func(t *rapid.T) {
		v, digits := rapid.Float64Range(-1e6, 1e6).Draw(t, "value"), rapid.IntRange(0, 4).Draw(t, "digits")
		s := term.Signed(v, digits)
		zero := strings.Trim(s, "+−0.") == ""
		switch {
		case !form.MatchString(s):
			t.Fatalf("%v is written %q", v, s)
		case zero != (strings.Trim(s[:1], "0") == ""):
			t.Fatalf("%v is written %q", v, s)
		case !zero && (v > 0) != strings.HasPrefix(s, "+"):
			t.Fatalf("%v is written %q", v, s)
		}
	})
}

// TestBenchName: a name is one word without slashes and without a number at its end. Otherwise benchstat would split
// it.
func TestBenchName(t *testing.T) {
	processors := regexp.MustCompile(`-\d+$`)
	letters := strings.NewReplacer(" ", "", "/", "", "_", "", "-", "")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9 /:*(),._+=-]{0,20}`).Draw(t, "name")
		have := benchName(name)
		if strings.ContainsAny(have, " /") || processors.MatchString(have) || letters.Replace(have) != letters.Replace(name) {
			t.Fatalf("%q became %q", name, have)
		}
	})
}
