package elementary

import "math"

// Hypot is √(x² + y²), without math.Hypot's guard against squares that overflow.
func Hypot(x, y float64) float64 { return math.Sqrt(float64(x*x) + float64(y*y)) }
