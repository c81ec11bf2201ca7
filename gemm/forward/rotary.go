package forward

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// rotary turns channel i and channel i + size/2 of a head by position·frequency[i].
type rotary struct {
	frequency []float32 // radians per position
}

// rotary reads the frequencies for heads of a size. Newer files have rope_parameters, older ones
// rope_theta and rope_scaling.
func (c *config) rotary(size int) *rotary {
	theta := c.positive("rope_theta", 10000)
	at := "rope_scaling."
	newer, older := c.object("rope_parameters"), c.object("rope_scaling")
	if newer {
		at = "rope_parameters."
		theta = c.positive("rope_parameters.rope_theta", theta)
	}
	if newer && older {
		c.failf("has both rope_parameters and rope_scaling: keep the one that holds")
	}
	c.refuse([]field{{"partial_rotary_factor", 1.0}, {at + "partial_rotary_factor", 1.0}})
	scale := func(f float64) float64 { return f }
	switch kind := get(c, at+"rope_type", get(c, at+"type", "default")); kind {
	case "default":
	case "linear":
		factor := c.positive(at+"factor", 0)
		scale = func(f float64) float64 { return f / factor }
	case "llama3":
		scale = c.llama3(at)
	default:
		c.failf("%srope_type is %q; the forward pass knows default, linear and llama3", at, kind)
	}
	r := &rotary{}
	for i := range size / 2 {
		// Rounded where the models' own code rounds.
		f := float32(1 / math.Pow(theta, float64(2*i)/float64(size)))
		r.frequency = append(r.frequency, float32(scale(float64(f))))
	}
	return r
}

// llama3 is Llama 3.1's scaling: low frequencies are divided by a factor, high ones stay, and those
// between are blended.
func (c *config) llama3(at string) func(float64) float64 {
	factor, low, high := c.positive(at+"factor", 0), c.positive(at+"low_freq_factor", 0), c.positive(at+"high_freq_factor", 0)
	length := c.positive(at+"original_max_position_embeddings", 0)
	if high <= low {
		c.failf("%shigh_freq_factor is %v, not above low_freq_factor (%v)", at, high, low)
	}
	return func(f float64) float64 {
		turns := length * f / (2 * math.Pi)
		switch {
		case turns < low:
			return f / factor
		case turns > high:
			return f
		}
		smooth := (turns - low) / (high - low)
		return float64((1-smooth)*f/factor) + float64(smooth*f)
	}
}

// turns has cosines and sines for positions from 0.
type turns struct{ cos, sin sgemm.Matrix }

func (r *rotary) turns(positions int) turns {
	t := turns{sgemm.Dense(positions, len(r.frequency), nil), sgemm.Dense(positions, len(r.frequency), nil)}
	for p := range positions {
		cos, sin := t.cos.Row(p), t.sin.Row(p)
		for i, f := range r.frequency {
			s, c := math.Sincos(float64(float32(p) * f))
			cos[i], sin[i] = float32(c), float32(s)
		}
	}
	return t
}

// turn rotates every head that x holds, all at one position.
func (t turns) turn(x []float32, position int) {
	cos, sin := t.cos.Row(position), t.sin.Row(position)
	half := len(cos)
	for ; len(x) > 0; x = x[2*half:] {
		a, b := x[:half], x[half:2*half]
		sin := sin[:half]
		for i, c := range cos {
			s, u, v := sin[i], a[i], b[i]
			a[i] = float32(u*c) - float32(v*s)
			b[i] = float32(v*c) + float32(u*s)
		}
	}
}

// apply rotates the first width columns of each row of y.
func (r *rotary) apply(ctx context.Context, d *Decoder, y sgemm.Matrix, width int, sequences [][]int32) error {
	var positions []int // by row
	longest := 0
	for _, tokens := range sequences {
		for p := range tokens {
			positions = append(positions, p)
		}
		longest = max(longest, len(tokens))
	}
	t := r.turns(longest)
	return d.rows(ctx, y.Rows, func(i int) { t.turn(y.Row(i)[:width], positions[i]) })
}
