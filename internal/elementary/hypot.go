package elementary

import "math"

// Hypot returns √(x² + y²). Unlike math.Hypot, it does not guard against squares that overflow.
func Hypot(x, y float64) float64 { return math.Sqrt(float64(x*x) + float64(y*y)) }
