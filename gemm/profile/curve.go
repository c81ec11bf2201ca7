package profile

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat"
)

// Mean power of the curve between two moments, with the ends of its 95 % interval. What lies beyond the
// curve's ends does not count.
func (c *Curve) Mean(from, to time.Duration) (watts, low, high float64) {
	if len(c.Watts) == 0 {
		return 0, 0, 0
	}
	a, b := c.cell(from), c.cell(to)
	if b <= a { // a moment: its cell
		a = math.Min(math.Floor(a), float64(len(c.Watts)-1))
		b = a + 1
	}
	watts = c.mean(a, b)
	half := c.half(a, b)
	return watts, watts - half, watts + half
}

// ResolutionAt is the curve's resolution at a moment, or at the end that is nearer.
func (c *Curve) ResolutionAt(t time.Duration) time.Duration {
	if len(c.Resolution) == 0 {
		return 0
	}
	return c.Resolution[min(len(c.Resolution)-1, int(c.cell(t)))]
}

func (c *Curve) end() time.Duration { return c.Start + time.Duration(len(c.Watts))*c.Step }

// cell is where a moment lies, in cells from the start, no further than either end.
func (c *Curve) cell(t time.Duration) float64 {
	return min(float64(len(c.Watts)), max(0, float64(t-c.Start)/float64(c.Step)))
}

// mean of the curve from a to b, in cells.
func (c *Curve) mean(a, b float64) float64 { return meanOf(c.Watts, a, b) }

func meanOf(values []float64, a, b float64) float64 {
	sum := 0.0
	for i := int(a); i < len(values) && float64(i) < b; i++ {
		sum += values[i] * (min(b, float64(i+1)) - max(a, float64(i)))
	}
	return sum / (b - a)
}

// half the width of the 95 % interval of the mean from a to b: from the resamples, or, in a curve that was
// read from a file, the mean of the cells' own, which is too wide rather than too narrow.
func (c *Curve) half(a, b float64) float64 {
	if len(c.resamples) < 2 {
		return (meanOf(c.High, a, b) - meanOf(c.Low, a, b)) / 2
	}
	means := make([]float64, len(c.resamples))
	for i, sum := range c.resamples {
		means[i] = meanBetween(sum, a, b)
	}
	return c.wide * stat.StdDev(means, nil)
}

// meanBetween is the mean from a to b, in cells, of what has this running integral.
func meanBetween(sum []float64, a, b float64) float64 {
	at := func(x float64) float64 {
		i := min(len(sum)-2, int(x))
		return sum[i] + (x-float64(i))*(sum[i+1]-sum[i])
	}
	return (at(b) - at(a)) / (b - a)
}
