package transform

import (
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// A floating-point number is a whole number times a power of two, and so has an exact image in the
// integers modulo a prime. The forward passes below compute there: no order of summation matters,
// powers of two cancel to the last digit, and two folders of weights have equal logits where and
// only where their functions agree (but for one chance in 2^31). What the field lacks gives way to
// polynomials with the same symmetries: SiLU, GELU and softmax to a cubic that commutes with
// neither signs nor scales, a norm's root of the mean square to the sum of squares.

const prime = 1<<31 - 1

// field maps a number; 2^31 is 1 modulo this prime.
func field(v float64) uint64 {
	frac, exp := math.Frexp(v)
	m := int64(math.Ldexp(frac, 53)) % prime
	return uint64(m+prime) % prime * (1 << (((exp-53)%31 + 31) % 31)) % prime
}

func cubic(x uint64) uint64 { return (x*x%prime*x%prime + 3*(x*x%prime) + 7*x + 5) % prime }

func dotField(a, b []uint64) (s uint64) {
	for i := range a {
		s = (s + a[i]*b[i]) % prime
	}
	return s
}

func addTo(x, y []uint64) []uint64 {
	sum := make([]uint64, len(x))
	for i := range x {
		sum[i] = (x[i] + y[i]) % prime
	}
	return sum
}

// network is a model's weights in the field.
type network struct {
	data map[string][]uint64
	cols map[string]int
	dims map[string]int
}

func networkOf(t tb, m *weights.Model) network {
	t.Helper()
	n := network{map[string][]uint64{}, map[string]int{}, layoutOf(t, m).Dims}
	ok(t, m.Each(func(x weights.Tensor) error {
		_, n.cols[x.Name] = x.Matrix()
		for _, v := range values(x) {
			n.data[x.Name] = append(n.data[x.Name], field(v))
		}
		return nil
	}))
	return n
}

func (n network) row(name string, i int) []uint64 {
	c := n.cols[name]
	return n.data[name][i*c : (i+1)*c]
}

// times is w·x, plus a bias where there is one; inFirst says that w is stored [in, out].
func (n network) times(layer string, x []uint64, inFirst bool) []uint64 {
	w, c := n.data[layer+".weight"], n.cols[layer+".weight"]
	outputs := len(w) / len(x)
	y := make([]uint64, outputs)
	for o := range y {
		for i, v := range x {
			at := o*c + i
			if inFirst {
				at = i*c + o
			}
			y[o] = (y[o] + w[at]*v) % prime
		}
	}
	if b := n.data[layer+".bias"]; b != nil {
		y = addTo(y, b)
	}
	return y
}

// norm is an RMSNorm, or with a bias a LayerNorm.
func (n network) norm(name string, x []uint64) []uint64 {
	w, b := n.data[name+".weight"], n.data[name+".bias"]
	x = slices.Clone(x)
	if b != nil {
		var sum uint64
		for _, v := range x {
			sum += v
		}
		for i, v := range x {
			x[i] = (v*uint64(len(x)) + (prime - sum%prime)) % prime
		}
	}
	scale := dotField(x, x)
	for i := range x {
		x[i] = x[i] * scale % prime * w[i] % prime
	}
	if b != nil {
		x = addTo(x, b)
	}
	return x
}

// turn mixes the two channels of each rotary pair, differently for each pair and position.
func turn(head []uint64, position int) []uint64 {
	half := len(head) / 2
	y := make([]uint64, len(head))
	for i := range half {
		c, s := uint64(31*i+17*position+2), uint64(57*i+position*position+11)
		y[i] = (c*head[i] + s*head[i+half]) % prime
		y[i+half] = (c*head[i+half] + (prime-s)*head[i]) % prime
	}
	return y
}

// attention of the last position's query over all keys and values.
func attention(query []uint64, keys, vals [][]uint64) []uint64 {
	out := make([]uint64, len(vals[0]))
	for u := range keys {
		w := cubic(dotField(query, keys[u]))
		for i, v := range vals[u] {
			out[i] = (out[i] + w*v) % prime
		}
	}
	return out
}

// tokens are what is fed in.
var tokens = []int{5, 0, 17}

// logits of the last token.
func (n network) logits() []uint64 {
	if n.dims["kv_heads"] > 0 {
		return n.llama()
	}
	return n.gpt2()
}

func (n network) llama() []uint64 {
	d, group := n.dims["head_dim"], n.dims["heads"]/n.dims["kv_heads"]
	var h [][]uint64
	for _, token := range tokens {
		h = append(h, n.row("model.embed_tokens.weight", token))
	}
	for l := range n.dims["layers"] {
		layer := fmt.Sprintf("model.layers.%d.", l)
		var q, k, v [][]uint64
		for _, x := range h {
			x = n.norm(layer+"input_layernorm", x)
			q = append(q, n.times(layer+"self_attn.q_proj", x, false))
			k = append(k, n.times(layer+"self_attn.k_proj", x, false))
			v = append(v, n.times(layer+"self_attn.v_proj", x, false))
		}
		for t := range h {
			var mixed []uint64
			for head := range n.dims["heads"] {
				var keys, vals [][]uint64
				for u := range t + 1 {
					at := head / group * d
					keys, vals = append(keys, turn(k[u][at:at+d], u)), append(vals, v[u][at:at+d])
				}
				mixed = append(mixed, attention(turn(q[t][head*d:(head+1)*d], t), keys, vals)...)
			}
			h[t] = addTo(h[t], n.times(layer+"self_attn.o_proj", mixed, false))
			x := n.norm(layer+"post_attention_layernorm", h[t])
			gate, up := n.times(layer+"mlp.gate_proj", x, false), n.times(layer+"mlp.up_proj", x, false)
			for i := range up {
				up[i] = up[i] * cubic(gate[i]) % prime
			}
			h[t] = addTo(h[t], n.times(layer+"mlp.down_proj", up, false))
		}
	}
	return n.head("model.embed_tokens", n.norm("model.norm", h[len(h)-1]))
}

func (n network) gpt2() []uint64 {
	d, width := n.dims["head_dim"], n.dims["hidden"]
	var h [][]uint64
	for t, token := range tokens {
		h = append(h, addTo(n.row("transformer.wte.weight", token), n.row("transformer.wpe.weight", t)))
	}
	for l := range n.dims["layers"] {
		layer := fmt.Sprintf("transformer.h.%d.", l)
		var qkv [][]uint64
		for t := range h {
			qkv = append(qkv, n.times(layer+"attn.c_attn", n.norm(layer+"ln_1", h[t]), true))
			var mixed []uint64
			for at := 0; at < width; at += d {
				var keys, vals [][]uint64
				for u := range t + 1 {
					keys = append(keys, qkv[u][width+at:width+at+d])
					vals = append(vals, qkv[u][2*width+at:2*width+at+d])
				}
				mixed = append(mixed, attention(qkv[t][at:at+d], keys, vals)...)
			}
			h[t] = addTo(h[t], n.times(layer+"attn.c_proj", mixed, true))
			x := n.times(layer+"mlp.c_fc", n.norm(layer+"ln_2", h[t]), true)
			for i := range x {
				x[i] = cubic(x[i])
			}
			h[t] = addTo(h[t], n.times(layer+"mlp.c_proj", x, true))
		}
	}
	return n.head("transformer.wte", n.norm("transformer.ln_f", h[len(h)-1]))
}

// head multiplies by the head, or by the embedding where they are tied.
func (n network) head(embedding string, x []uint64) []uint64 {
	if n.data["lm_head.weight"] != nil {
		embedding = "lm_head"
	}
	return n.times(embedding, x, false)
}
