package reference

import (
	"fmt"
	"math"
)

// llama computes Llama 1 to 3.
func llama(p *model, in Inputs) [][]float64 { return p.llama().run(in) }

// decoder is a Llama. Relatives of Llama set other values of its fields. The argument at of a function is the layer's
// prefix, such as "model.layers.3.".
type decoder struct {
	*model
	hidden, heads, kv, size int // size: size of a head
	epsilon                 float64
	prefix                  string

	// norms are the names of the norms before and after attention, and before and after the MLP; empty: no norm.
	norms [4]string
	norm  func(name string, x []float64) []float64

	// attention computes a layer's self-attention of x[position].
	attention func(layer int, at string, x [][]float64) [][]float64

	project func(at string, x []float64) (q, k, v []float64)
	rope    func(layer int) rotary
	sees    func(layer, t, u int) bool // whether position t attends to position u
	score   func(qk float64) float64
	mlp     func(layer int, at string, x []float64) []float64

	embedding, branch float64 // factors of the embeddings, and of a layer's output before it is added to the residual stream
	logit             func(float64) float64
	act               func(float64) float64
}

// llama returns Llama's decoder.
func (p *model) llama() *decoder {
	hidden, heads := p.count("hidden_size"), p.count("num_attention_heads")
	d := &decoder{
		model: p, hidden: hidden, heads: heads,
		kv: p.count("num_key_value_heads", heads), size: p.count("head_dim", hidden/heads),
		epsilon:   p.number("rms_norm_eps", 1e-6),
		prefix:    p.under("embed_tokens.weight", "model.", "", "language_model.model.", "model.language_model."),
		norms:     [4]string{"input_layernorm", "", "post_attention_layernorm", ""},
		sees:      causal,
		embedding: 1, branch: 1,
		logit: func(x float64) float64 { return x },
		act:   activation(p.text("hidden_act", "silu")),
	}
	d.norm = func(name string, x []float64) []float64 { return rmsNorm(x, p.values(name+".weight"), d.epsilon) }
	d.attention = d.headsAttention
	d.project = func(at string, x []float64) (q, k, v []float64) {
		at += "self_attn."
		return p.linear(at+"q_proj", x), p.linear(at+"k_proj", x), p.linear(at+"v_proj", x)
	}
	d.rope = func(int) rotary { return p.rotary(d.size) }
	d.score = func(qk float64) float64 { return qk / math.Sqrt(float64(d.size)) }
	d.mlp = func(_ int, at string, x []float64) []float64 {
		at += "mlp."
		return d.gatedMLP(at+"gate_proj", at+"up_proj", at+"down_proj", x)
	}
	return d
}

// gatedMLP returns down·(act(gate·x) ⊙ up·x).
func (d *decoder) gatedMLP(gate, up, down string, x []float64) []float64 {
	return d.linear(down, gated(d.act, d.linear(gate, x), d.linear(up, x)))
}

// gated returns act(gate) ⊙ up.
func gated(act func(float64) float64, gate, up []float64) []float64 {
	same(gate, up)
	z := make([]float64, len(gate))
	for i := range z {
		z[i] = act(gate[i]) * up[i]
	}
	return z
}

func (d *decoder) run(in Inputs) [][]float64 {
	h := make([][]float64, len(in.Tokens))
	for t, token := range in.Tokens {
		h[t] = times(d.row(d.prefix+"embed_tokens.weight", int(token), d.hidden), d.embedding)
	}
	for layer := range d.count("num_hidden_layers") {
		at := fmt.Sprintf("%slayers.%d.", d.prefix, layer)
		x := make([][]float64, len(h))
		for t := range h {
			x[t] = d.optionalNorm(at, d.norms[0], h[t])
		}
		for t, y := range d.attention(layer, at, x) {
			y = d.optionalNorm(at, d.norms[1], y)
			h[t] = add(h[t], times(y, d.branch))
			y = d.mlp(layer, at, d.optionalNorm(at, d.norms[2], h[t]))
			y = d.optionalNorm(at, d.norms[3], y)
			h[t] = add(h[t], times(y, d.branch))
		}
	}
	for t := range h {
		h[t] = d.norm(d.prefix+"norm", h[t])
		if head := d.head(); head != "" {
			h[t] = d.linear(head, h[t])
			for i := range h[t] {
				h[t][i] = d.logit(h[t][i])
			}
		}
	}
	return h
}

func (d *decoder) optionalNorm(at, name string, x []float64) []float64 {
	if name == "" {
		return x
	}
	return d.norm(at+name, x)
}

// headsAttention computes attention with a key and a value for each head, or for each group of heads.
func (d *decoder) headsAttention(layer int, at string, x [][]float64) [][]float64 {
	rope, queries := d.rope(layer), make([][][]float64, d.heads) // by head and position
	keys, values := make([][][]float64, d.kv), make([][][]float64, d.kv)
	for t := range x {
		q, k, v := d.project(at, x[t])
		for n := range d.heads {
			queries[n] = append(queries[n], rope.halves(q[n*d.size:(n+1)*d.size], t))
		}
		for n := range d.kv {
			keys[n] = append(keys[n], rope.halves(k[n*d.size:(n+1)*d.size], t))
			values[n] = append(values[n], v[n*d.size:(n+1)*d.size])
		}
	}
	y := make([][]float64, len(x))
	for t := range x {
		var z []float64
		for n := range d.heads {
			of := n * d.kv / d.heads
			z = append(z, attend(values[of], func(u int) float64 {
				if !d.sees(layer, t, u) {
					return math.Inf(-1)
				}
				return d.score(dot(queries[n][t], keys[of][u]))
			})...)
		}
		y[t] = d.linear(at+"self_attn.o_proj", z)
	}
	return y
}

// head returns the name of the layer that computes logits; empty if the model returns hidden states.
func (d *decoder) head() string {
	switch {
	case d.headless():
		return ""
	case d.is("tie_word_embeddings", false):
		return d.prefix + "embed_tokens"
	}
	return d.under("lm_head.weight", "", "language_model.") + "lm_head"
}
