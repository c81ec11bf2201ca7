package arch

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// The models here compute in the integers modulo a prime, where every sum and every power of two
// is exact: what a symmetry keeps is kept to the last digit, and what breaks shows. Functions
// that the field lacks give way to polynomials that share their symmetries: an activation to one
// that commutes with neither signs nor scales, a norm's division by its invariant to a
// multiplication.

const prime = 1<<31 - 1

type num uint64

func add(a, b num) num { return (a + b) % prime }
func mul(a, b num) num { return a * b % prime }
func neg(a num) num    { return (prime - a) % prime }

// pow2 is 2^k; k may be negative. 2^31 is 1 modulo this prime.
func pow2(k int) num { return 1 << ((k%31 + 31) % 31) }

func act(x num) num { return add(mul(x, mul(x, x)), add(mul(3, mul(x, x)), 5)) }

func dot(a, b []num) (s num) {
	for i := range a {
		s = add(s, mul(a[i], b[i]))
	}
	return s
}

func plus(a, b []num) []num {
	c := make([]num, len(a))
	for i := range a {
		c[i] = add(a[i], b[i])
	}
	return c
}

// array is a tensor of one or two dimensions, row-major; cols is 1 for a vector.
type array struct {
	rows, cols int
	data       []num
}

func (a array) row(i int) []num { return a.data[i*a.cols : (i+1)*a.cols] }

// apply is a·x for weights stored [out, in].
func (a array) apply(x []num) []num {
	y := make([]num, a.rows)
	for i := range y {
		y[i] = dot(a.row(i), x)
	}
	return y
}

// applyT is x·a for weights stored [in, out].
func (a array) applyT(x []num) []num {
	y := make([]num, a.cols)
	for i := range a.rows {
		for j := range y {
			y[j] = add(y[j], mul(x[i], a.data[i*a.cols+j]))
		}
	}
	return y
}

type checkpoint map[string]array

// random draws a checkpoint's weights.
func random(t *rapid.T, infos []weights.Info) checkpoint {
	state := rapid.Uint64().Draw(t, "weights")
	c := checkpoint{}
	for _, info := range infos {
		a := array{rows: info.Shape[0], cols: 1, data: make([]num, info.Len())}
		if len(info.Shape) == 2 {
			a.cols = info.Shape[1]
		}
		for i := range a.data {
			state = state*6364136223846793005 + 1442695040888963407
			a.data[i] = num(state>>33) % prime
		}
		c[info.Name] = a
	}
	return c
}

// transform does a change to all tensors, by what their axes say.
func (c checkpoint) transform(l *Layout, ch change) checkpoint {
	out := checkpoint{}
	for name, a := range c {
		axes := l.Claims[name].Axes
		rows, cols := along(axes[0], ch), []origin{{0, 1}}
		if len(axes) == 2 {
			cols = along(axes[1], ch)
		}
		b := array{a.rows, a.cols, nil}
		for _, r := range rows {
			for _, k := range cols {
				b.data = append(b.data, mul(a.data[r.at*a.cols+k.at], mul(r.factor, k.factor)))
			}
		}
		out[name] = b
	}
	return out
}

// origin is where a position of the result comes from, and by what it is multiplied.
type origin struct {
	at     int
	factor num
}

func along(a *Axis, ch change) []origin {
	gather, signs, exps := a.Gather(ch.perm), a.Signs(ch.flip), a.Exps(ch.exp)
	out := make([]origin, a.Len())
	for i := range out {
		at, factor := i, num(1)
		if gather != nil {
			at = gather[i]
		}
		if exps != nil {
			factor = pow2(exps[at])
		}
		if signs != nil && signs[at] {
			factor = neg(factor)
		}
		out[i] = origin{at, factor}
	}
	return out
}

var tokens = []int{3, 0, 5}

// attend mixes the values of the positions up to t by a polynomial of the scores.
func attend(q []num, keys, values [][]num) []num {
	out := make([]num, len(values[0]))
	for u := range keys {
		w := act(dot(q, keys[u]))
		for i, v := range values[u] {
			out[i] = add(out[i], mul(w, v))
		}
	}
	return out
}

// rotate mixes channel i with channel i + half, by a matrix for each pair and position.
func rotate(x []num, position int) []num {
	half := len(x) / 2
	y := make([]num, len(x))
	for i := range half {
		m := func(k int) num { return num(1000003*(i+1)*(position+2) + 7919*k*k + 13*k) }
		y[i] = add(mul(m(0), x[i]), mul(m(1), x[i+half]))
		y[i+half] = add(mul(m(2), x[i]), mul(m(3), x[i+half]))
	}
	return y
}

// rmsNorm multiplies by the sum of squares where a norm would divide by its root.
func rmsNorm(x []num, w array) []num {
	s, y := dot(x, x), make([]num, len(x))
	for i := range x {
		y[i] = mul(mul(x[i], s), w.data[i])
	}
	return y
}

// layerNorm is rmsNorm after the mean, times the number of channels, is subtracted.
func layerNorm(x []num, w, b array) []num {
	sum := num(0)
	for _, v := range x {
		sum = add(sum, v)
	}
	c := make([]num, len(x))
	for i, v := range x {
		c[i] = add(mul(num(len(x)), v), neg(sum))
	}
	return plus(rmsNorm(c, w), b.data)
}

// llama computes the logits of the last token.
func (c checkpoint) llama(dims map[string]int) []num {
	head := "lm_head.weight"
	if _, untied := c[head]; !untied {
		head = "model.embed_tokens.weight"
	}
	hidden := make([][]num, len(tokens))
	for t, token := range tokens {
		hidden[t] = c["model.embed_tokens.weight"].row(token)
	}
	for i := range dims["layers"] {
		at := func(module string) array { return c[fmt.Sprintf("model.layers.%d.%s", i, module)] }
		linear := func(module string, x []num) []num {
			return plus(at(module+".weight").apply(x), at(module+".bias").data)
		}
		c.llamaAttention(dims, hidden, at, linear)
		for t, h := range hidden {
			x := rmsNorm(h, at("post_attention_layernorm.weight"))
			gate, up := linear("mlp.gate_proj", x), linear("mlp.up_proj", x)
			for j := range up {
				up[j] = mul(act(gate[j]), up[j])
			}
			hidden[t] = plus(h, linear("mlp.down_proj", up))
		}
	}
	return c[head].apply(rmsNorm(hidden[len(hidden)-1], c["model.norm.weight"]))
}

func (c checkpoint) llamaAttention(dims map[string]int, hidden [][]num, at func(string) array, linear func(string, []num) []num) {
	d, group := dims["head_dim"], dims["group_size"]
	queries, out := make([][]num, len(hidden)), make([][]num, len(hidden))
	keys, values := make([][]num, len(hidden)), make([][]num, len(hidden))
	for t, h := range hidden {
		x := rmsNorm(h, at("input_layernorm.weight"))
		queries[t], keys[t], values[t] = linear("self_attn.q_proj", x), linear("self_attn.k_proj", x), linear("self_attn.v_proj", x)
		for h := range dims["heads"] {
			var ks, vs [][]num
			for u := range t + 1 {
				kv := h / group * d
				ks, vs = append(ks, rotate(keys[u][kv:kv+d], u)), append(vs, values[u][kv:kv+d])
			}
			out[t] = append(out[t], attend(rotate(queries[t][h*d:(h+1)*d], t), ks, vs)...)
		}
	}
	for t, h := range hidden {
		hidden[t] = plus(h, linear("self_attn.o_proj", out[t]))
	}
}

// gpt2 computes the logits of the last token.
func (c checkpoint) gpt2(dims map[string]int) []num {
	hidden := make([][]num, len(tokens))
	for t, token := range tokens {
		hidden[t] = plus(c["transformer.wte.weight"].row(token), c["transformer.wpe.weight"].row(t))
	}
	norm := func(name string, x []num) []num { return layerNorm(x, c[name+".weight"], c[name+".bias"]) }
	linear := func(name string, x []num) []num { return plus(c[name+".weight"].applyT(x), c[name+".bias"].data) }
	n, d := dims["hidden"], dims["head_dim"]
	for i := range dims["layers"] {
		layer := fmt.Sprintf("transformer.h.%d.", i)
		var qkv [][]num
		for t, h := range hidden {
			qkv = append(qkv, linear(layer+"attn.c_attn", norm(layer+"ln_1", h)))
			var out []num
			for h := 0; h < n; h += d {
				var ks, vs [][]num
				for u := range t + 1 {
					ks, vs = append(ks, qkv[u][n+h:n+h+d]), append(vs, qkv[u][2*n+h:2*n+h+d])
				}
				out = append(out, attend(qkv[t][h:h+d], ks, vs)...)
			}
			hidden[t] = plus(h, linear(layer+"attn.c_proj", out))
		}
		for t, h := range hidden {
			f := linear(layer+"mlp.c_fc", norm(layer+"ln_2", h))
			for j := range f {
				f[j] = act(f[j])
			}
			hidden[t] = plus(h, linear(layer+"mlp.c_proj", f))
		}
	}
	head := "transformer.wte.weight"
	if _, untied := c["lm_head.weight"]; untied {
		head = "lm_head.weight"
	}
	return c[head].apply(norm("transformer.ln_f", hidden[len(hidden)-1]))
}
