package forward

import (
	"context"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// norm is a norm over channels with its weights.
type norm struct {
	decoder.Norm
	w, b []float32 // b is nil if the norm has no bias
}

func loadNorm(ctx context.Context, w Weights, n decoder.Norm) (norm, error) {
	weight, err := optional(ctx, w, n.Weight, n.Width)
	if err != nil {
		return norm{}, err
	}
	switch {
	case weight == nil:
		weight = slices.Repeat([]float32{1}, n.Width)
	case n.Kind == arch.RMSNorm1p:
		weight = slices.Clone(weight)
		for i := range weight {
			weight[i]++
		}
	}
	bias, err := optional(ctx, w, n.Bias, n.Width)
	return norm{n, weight, bias}, err
}

// apply writes y = norm(x), row by row, or y = x if there is no norm. y may be x.
func (n norm) apply(p *pass, y, x sgemm.Matrix) error {
	return p.rows(x.Rows, func(i int) {
		if n.Missing() {
			copy(y.Row(i), x.Row(i))
		} else {
			n.row(y.Row(i), x.Row(i))
		}
	})
}

// row normalises one row. y may be x.
func (n norm) row(y, x []float32) {
	mean := 0.0
	if n.Kind == arch.LayerNorm {
		mean = sum(x) / float64(len(x))
	}
	scale := 1 / math.Sqrt(squares(x, mean)/float64(len(x))+n.Epsilon)
	y, w := y[:len(x)], n.w[:len(x)]
	for i, v := range x {
		y[i] = w[i] * float32(float64(float64(v)-mean)*scale)
	}
	if n.b != nil {
		addTo(y, n.b)
	}
}

// sum returns the sum of x. It adds in four chains, which a processor can overlap.
func sum(x []float32) float64 {
	var s [4]float64
	for len(x) >= 4 {
		s[0] += float64(x[0])
		s[1] += float64(x[1])
		s[2] += float64(x[2])
		s[3] += float64(x[3])
		x = x[4:]
	}
	for _, v := range x {
		s[0] += float64(v)
	}
	return s[0] + s[1] + (s[2] + s[3])
}

// squares returns the sum of the squares of x - mean, added in four chains.
func squares(x []float32, mean float64) float64 {
	var s [4]float64
	for len(x) >= 4 {
		s[0] += square(float64(x[0]) - mean)
		s[1] += square(float64(x[1]) - mean)
		s[2] += square(float64(x[2]) - mean)
		s[3] += square(float64(x[3]) - mean)
		x = x[4:]
	}
	for _, v := range x {
		s[0] += square(float64(v) - mean)
	}
	return s[0] + s[1] + (s[2] + s[3])
}

// square returns x². The conversion rounds the product, so that no machine fuses it with the following addition.
func square(x float64) float64 { return float64(x * x) }
