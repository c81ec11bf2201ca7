package component

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

var number = regexp.MustCompile(`-?\d+\.\d+(e[-+]\d+)?`)

// TestModelIsFrozen: an invented card's readings give the coefficients, splits, clocks and advice that they gave, to six digits. The
// readings have noise, so every step of the fit shows in them.
func TestModelIsFrozen(t *testing.T) {
	js, err := json.MarshalIndent(said(t, inventedFacts(), someReadings(t)), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	rounded := number.ReplaceAllFunc(js, func(text []byte) []byte {
		v, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			t.Fatal(err)
		}
		if v < 1e-9 && v > -1e-9 { // what is left of zero
			v = 0
		}
		return strconv.AppendFloat(nil, v, 'g', 6, 64)
	})
	goldenfile.Same(t, "testdata/model.json", append(rounded, '\n'))
}
