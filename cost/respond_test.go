package cost

import (
	"math"
	"slices"
	"testing"
)

// TestRespond: the responses of the built-in calibration agree with its points, fall everywhere, and are 1 for the
// baseline.
func TestRespond(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Series {
		s := c.Series[i]
		c.Facts.Power.respond(&s)
		if !slices.Equal(s.Response, c.Series[i].Response) {
			t.Errorf("%v: the response is %v, stored is %v", s.Product, s.Response, c.Series[i].Response)
		}
		if math.Abs(s.clockAt(1)-1) > 1e-4 || s.clockAt(-1) != s.Response[0] || s.clockAt(99) != s.Response[knots-1] {
			t.Errorf("%v: %v at 1, %v and %v at the ends", s.Product, s.clockAt(1), s.clockAt(-1), s.clockAt(99))
		}
		if middle := s.clockAt(2.5 * knot); math.Abs(middle-(s.Response[2]+s.Response[3])/2) > 1e-9 {
			t.Errorf("%v: %v between %v and %v", s.Product, middle, s.Response[2], s.Response[3])
		}
		for k := 1; k < knots; k++ {
			if s.Response[k] > s.Response[k-1] {
				t.Errorf("%v: the response rises: %v", s.Product, s.Response)
			}
		}
	}
}

// TestValidResponse: a response has the right number of ratios, all within a factor of ten.
func TestValidResponse(t *testing.T) {
	for v, want := range map[float64]bool{0.1: false, 0.101: true, 1: true, 9.99: true, 10: false, math.NaN(): false} {
		s := Series{Response: slices.Repeat([]float64{v}, knots)}
		if (s.validResponse() == nil) != want {
			t.Errorf("%v: valid %v", v, !want)
		}
	}
	if (&Series{Response: make([]float64, knots-1)}).validResponse() == nil || (&Series{}).validResponse() == nil {
		t.Error("a short response is valid")
	}
}
