package reference

import (
	"math"
	"slices"
)

// rmsNorm returns x/rms·w.
func rmsNorm(x, w []float64, epsilon float64) []float64 {
	same(x, w)
	scale := 1 / math.Sqrt(dot(x, x)/float64(len(x))+epsilon)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * scale * w[i]
	}
	return y
}

// layerNorm returns (x - mean)/deviation·w + b. b may be nil.
func layerNorm(x, w, b []float64, epsilon float64) []float64 {
	same(x, w)
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	centred := make([]float64, len(x))
	for i, v := range x {
		centred[i] = v - mean
	}
	y := rmsNorm(centred, w, epsilon)
	if b != nil {
		y = add(y, b)
	}
	return y
}

// softmax returns exp(x)/Σ exp(x).
func softmax(x []float64) []float64 {
	largest, total := slices.Max(x), 0.0
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = math.Exp(v - largest)
		total += y[i]
	}
	return times(y, 1/total)
}

// attend returns the mean of the values, weighted by the softmax of the scores. score returns the score of a key's
// position.
func attend(values [][]float64, score func(position int) float64) []float64 {
	scores := make([]float64, len(values))
	for u := range values {
		scores[u] = score(u)
	}
	z := make([]float64, len(values[0]))
	for u, s := range softmax(scores) {
		z = add(z, times(values[u], s))
	}
	return z
}

// dotAttention is attend with the scores q·k/√size.
func dotAttention(q []float64, keys, values [][]float64) []float64 {
	return attend(values, func(u int) float64 { return dot(q, keys[u]) / math.Sqrt(float64(len(q))) })
}

// activation returns the activation function of a name in config.json.
func activation(name string) func(float64) float64 {
	switch name {
	case "silu", "swish":
		return func(x float64) float64 { return x / (1 + math.Exp(-x)) }
	case "gelu":
		return func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }
	case "gelu_new", "gelu_pytorch_tanh":
		return func(x float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}
	case "relu":
		return func(x float64) float64 { return max(x, 0) }
	}
	failf("config.json: the activation %q is unknown", name)
	return nil
}

func dot(a, b []float64) (s float64) {
	same(a, b)
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func add(a, b []float64) []float64 {
	same(a, b)
	c := make([]float64, len(a))
	for i := range a {
		c[i] = a[i] + b[i]
	}
	return c
}

func times(a []float64, s float64) []float64 {
	c := make([]float64, len(a))
	for i := range a {
		c[i] = a[i] * s
	}
	return c
}

func same(a, b []float64) {
	if len(a) != len(b) {
		failf("vectors of %d and %d values differ in length", len(a), len(b))
	}
}
