package quantise

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestFloatCodes compares the codes with the rounding of package weights, for every BF16 value and for values around the
// middles between codes.
func TestFloatCodes(t *testing.T) {
	f, _ := weights.F8E4M3.Format()
	var values []float32
	for b := range uint32(1 << 16) {
		values = append(values, math.Float32frombits(b<<16))
	}
	for c := range uint32(0x7E) {
		middle := (f.Value(c) + f.Value(c+1)) / 2
		values = append(values, middle, math.Nextafter32(middle, 0), math.Nextafter32(middle, 1000))
	}
	for _, v := range values {
		if v != v || math.IsInf(float64(v), 0) {
			continue
		}
		if got, want := floatCode(v), byte(f.FromValue(v)); got != want {
			t.Fatalf("%g has the code %#x, want %#x", v, got, want)
		}
	}
}

// TestFourCodes compares the code with a search through all codes.
func TestFourCodes(t *testing.T) {
	magnitudes := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	for i := -1000; i <= 1000; i++ {
		v := float64(i) / 128
		best := 0
		for c, m := range magnitudes {
			near, nearest := math.Abs(math.Abs(v)-m), math.Abs(math.Abs(v)-magnitudes[best])
			if near < nearest || near == nearest && c%2 == 0 { // ties to the even code
				best = c
			}
		}
		if v < 0 {
			best |= 8
		}
		if got := fourCode(float32(v)); got != byte(best) {
			t.Fatalf("%g has the code %d, want %d", v, got, best)
		}
	}
}

func TestIntCodes(t *testing.T) {
	for _, test := range []struct {
		v, inverse float32
		zero, most int32
		want       byte
	}{
		{0, 1, 8, 15, 8}, {1.5, 1, 8, 15, 10}, {2.5, 1, 8, 15, 10}, {-7.4, 1, 8, 15, 1}, {-9, 1, 8, 15, 0}, {90, 1, 8, 15, 15}, {1e30, 1e8, 8, 15, 15},
		{-1e30, 1e8, 8, 15, 0}, {3, 0.5, 3, 15, 5}, {-128, 1, 128, 255, 0}, {127, 1, 128, 255, 255},
	} {
		if got := intCode(test.v, test.inverse, test.zero, test.most); got != test.want {
			t.Errorf("%v × %v has the code %d, want %d", test.v, test.inverse, got, test.want)
		}
	}
}
