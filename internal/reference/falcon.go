package reference

import (
	"fmt"
	"math"
)

// falcon computes Falcon in its layouts: 7B (one KV head; attention and FFN in parallel after one norm), 40B and 180B
// (grouped KV heads, one norm each; 11B shares one norm), RW (ALiBi; attention before FFN).
func falcon(p *model, in Inputs) [][]float64 {
	hidden, heads := p.count("n_embed", p.count("hidden_size", 4544)), p.count("num_attention_heads", 71)
	size := hidden / heads
	grouped := p.is("new_decoder_architecture", false)
	parallel := grouped || p.is("parallel_attn", true)
	kv := heads
	switch {
	case grouped:
		kv = p.count("num_kv_heads", heads)
	case p.is("multi_query", true):
		kv = 1
	}
	group := heads / kv
	norm := func(name string, x []float64) []float64 {
		return p.layerNorm(name, p.number("layer_norm_epsilon", 1e-5))(x)
	}
	turn, lift := p.rotary(size).halves, func(head, position int) float64 { return 0 }
	if slopes := alibiSlopes(heads); p.is("alibi", false) {
		turn = func(x []float64, _ int) []float64 { return x }
		// The published code rounds to BF16 here, for every type of model.
		lift = func(n, position int) float64 { return bf16(bf16(slopes[n]) * bf16(float64(position))) }
	}
	root := p.under("word_embeddings.weight", "transformer.", "")
	h := make([][]float64, len(in.Tokens))
	for t, token := range in.Tokens {
		h[t] = p.row(root+"word_embeddings.weight", int(token), hidden)
	}
	for layer := range p.count("num_hidden_layers", 32) {
		at := fmt.Sprintf("%sh.%d.", root, layer)
		before, between := at+"input_layernorm", at+"post_attention_layernorm"
		switch {
		case grouped && p.count("num_ln_in_parallel_attn", 2) == 2:
			before, between = at+"ln_attn", at+"ln_mlp"
		case parallel:
			between = before
		}
		mlp := p.mlp(at+"mlp.dense_h_to_4h", at+"mlp.dense_4h_to_h", activation(p.text("activation", "gelu")))
		keys, values := make([][][]float64, kv), make([][][]float64, kv) // by head and position
		for t := range h {
			qkv := p.linear(at+"self_attention.query_key_value", norm(before, h[t]))
			var z []float64
			for n := range kv {
				part := func(i int) []float64 { i += n * (group + 2); return qkv[i*size : (i+1)*size] }
				keys[n], values[n] = append(keys[n], turn(part(group), t)), append(values[n], part(group+1))
				for g := range group {
					q := turn(part(g), t)
					z = append(z, attend(values[n], func(u int) float64 {
						return (dot(q, keys[n][u]) + lift(n*group+g, u)) / math.Sqrt(float64(size))
					})...)
				}
			}
			attention := p.linear(at+"self_attention.dense", z)
			x := h[t]
			if !parallel {
				x = add(x, attention)
			}
			h[t] = add(add(h[t], attention), mlp(norm(between, x)))
		}
	}
	head := "lm_head"
	if p.is("tie_word_embeddings", true) {
		head = root + "word_embeddings"
	}
	for t := range h {
		h[t] = norm(root+"ln_f", h[t])
		if !p.headless() {
			h[t] = p.linear(head, h[t])
		}
	}
	return h
}
