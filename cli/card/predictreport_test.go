package card

import "testing"

func TestThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0.5112: "511 mJ", 1.2345: "1.23 J", 12.345: "12.3 J", 1234.5: "1234 J", 0.0099: "9.90 mJ", 998.4e-6: "998 µJ", 2.5e-9: "0.00 µJ"} {
		if have := threeDigits(v); have != want {
			t.Errorf("%v is %s, want %s", v, have, want)
		}
	}
}
