package reference

import "fmt"

// gptNeoX computes GPT-NeoX and Pythia. q, k and v of a head are stored together, only a part of each head's channels
// is rotary, and attention and FFN read the same hidden state through separate norms.
func gptNeoX(p *model, in Inputs) [][]float64 {
	hidden, heads := p.count("hidden_size"), p.count("num_attention_heads")
	size := hidden / heads
	part := p.number("rope_parameters.partial_rotary_factor", p.number("rotary_pct", 0.25))
	rope := p.rotary(int(part * float64(size)))
	norm := func(name string, x []float64) []float64 {
		return p.layerNorm(name, p.number("layer_norm_eps", 1e-5))(x)
	}
	root := p.under("embed_in.weight", "gpt_neox.", "")
	h := make([][]float64, len(in.Tokens))
	for t, token := range in.Tokens {
		h[t] = p.row(root+"embed_in.weight", int(token), hidden)
	}
	for layer := range p.count("num_hidden_layers") {
		at := fmt.Sprintf("%slayers.%d.", root, layer)
		mlp := p.mlp(at+"mlp.dense_h_to_4h", at+"mlp.dense_4h_to_h", activation(p.text("hidden_act", "gelu")))
		keys, values := make([][][]float64, heads), make([][][]float64, heads) // by head and position
		for t := range h {
			qkv := p.linear(at+"attention.query_key_value", norm(at+"input_layernorm", h[t]))
			var z []float64
			for n := range heads {
				part := func(i int) []float64 { return qkv[(3*n+i)*size : (3*n+i+1)*size] }
				keys[n], values[n] = append(keys[n], rope.halves(part(1), t)), append(values[n], part(2))
				z = append(z, dotAttention(rope.halves(part(0), t), keys[n], values[n])...)
			}
			attention := p.linear(at+"attention.dense", z)
			x := h[t]
			if !p.is("use_parallel_residual", true) {
				x = add(x, attention)
			}
			h[t] = add(add(h[t], attention), mlp(norm(at+"post_attention_layernorm", x)))
		}
	}
	head := "embed_out"
	if p.is("tie_word_embeddings", false) {
		head = root + "embed_in"
	}
	for t := range h {
		h[t] = norm(root+"final_layer_norm", h[t])
		if !p.headless() {
			h[t] = p.linear(head, h[t])
		}
	}
	return h
}
