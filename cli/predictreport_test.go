package cli

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
)

func TestThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0.5112: "511 mJ", 1.2345: "1.23 J", 12.345: "12.3 J", 1234.5: "1234 J", 0.0099: "9.90 mJ", 998.4e-6: "998 µJ", 2.5e-9: "0.00 µJ"} {
		if have := threeDigits(v); have != want {
			t.Errorf("%v is %s, want %s", v, have, want)
		}
	}
}

// TestWarnings: each is made once, and says what it is about unless that is everything.
func TestWarnings(t *testing.T) {
	r := predictReport{Predictions: []predicted{
		{Name: "a", Prediction: cost.Prediction{Warnings: []string{"all", "some"}}},
		{Name: "b", Prediction: cost.Prediction{Warnings: []string{"all"}}},
		{Name: "c", Prediction: cost.Prediction{Warnings: []string{"some", "all"}}},
	}}
	if have := strings.Join(r.warnings(), "; "); have != "all; a, c: some" {
		t.Error(have)
	}
}
