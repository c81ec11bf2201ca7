package reference

import "math"

// multiHead computes attention with heads of equal size. The weights are the softmax of q·k/√size + bias; a bias of
// -Inf masks a position. The heads' outputs are concatenated.
func multiHead(q, k, v [][]float64, heads int, bias func(head, t, u int) float64) [][]float64 {
	size := len(q[0]) / heads
	part := func(x []float64, n int) []float64 { return x[n*size : (n+1)*size] }
	y := make([][]float64, len(q))
	for t := range q {
		for n := range heads {
			values := each(v, func(x []float64) []float64 { return part(x, n) })
			y[t] = append(y[t], attend(values, func(u int) float64 {
				return dot(part(q[t], n), part(k[u], n))/math.Sqrt(float64(size)) + bias(n, t, u)
			})...)
		}
	}
	return y
}

// backwards is the bias of the causal mask.
func backwards(_, t, u int) float64 {
	if u > t {
		return math.Inf(-1)
	}
	return 0
}

// around is the bias without a mask.
func around(_, _, _ int) float64 { return 0 }

// each applies f to every position.
func each(x [][]float64, f func([]float64) []float64) [][]float64 {
	y := make([][]float64, len(x))
	for t := range x {
		y[t] = f(x[t])
	}
	return y
}

// plus returns the sum of two sequences of vectors.
func plus(a, b [][]float64) [][]float64 {
	y := make([][]float64, len(a))
	for t := range a {
		y[t] = add(a[t], b[t])
	}
	return y
}

// layer returns a linear layer as a function.
func (p *model) layer(name string) func([]float64) []float64 {
	return func(x []float64) []float64 { return p.linear(name, x) }
}

// layerNorm returns a norm as a function. Old checkpoints name its weight gamma and its bias beta.
func (p *model) layerNorm(name string, epsilon float64) func([]float64) []float64 {
	weight, bias := name+".weight", name+".bias"
	if p.has(name + ".gamma") {
		weight, bias = name+".gamma", name+".beta"
	}
	return func(x []float64) []float64 { return layerNorm(x, p.values(weight), p.values(bias), epsilon) }
}

// mlp returns two layers with an activation between them, as a function.
func (p *model) mlp(up, down string, act func(float64) float64) func([]float64) []float64 {
	return func(x []float64) []float64 { return p.linear(down, apply(act, p.linear(up, x))) }
}

func apply(f func(float64) float64, x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}
