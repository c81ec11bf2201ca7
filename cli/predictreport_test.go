package cli

import (
	"math"
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

// TestLikeRandom: a model over the random operands of another takes, over it, what their joules say.
func TestLikeRandom(t *testing.T) {
	source := cost.Prediction{Relative: 1.25, Interval: [2]float64{1.2, 1.3}, Joules: new(5.0)}
	scaled := cost.Prediction{Relative: 1, Interval: [2]float64{0.9, 1.1}, Joules: new(4.5)}
	over := likeRandom(scaled, source)
	near := func(what string, have, want float64) {
		if math.Abs(have-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, have, want)
		}
	}
	near("energy over the source", over.Relative/source.Relative, 4.5/5)
	near("the interval's width", (over.Interval[1]-over.Interval[0])/over.Relative, 0.2)
	if same := likeRandom(source, source); same.Relative != source.Relative {
		t.Errorf("it takes %v of itself", same.Relative/source.Relative)
	}
	scaled.Joules = nil
	if likeRandom(scaled, source).Relative != scaled.Relative {
		t.Error("without joules it changes")
	}
}
