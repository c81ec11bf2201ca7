package reference

import "fmt"

// gpt2 computes GPT-2: weights stored [in, out], learned positions.
func gpt2(p *model, in Inputs) [][]float64 {
	hidden, heads := p.count("n_embd"), p.count("n_head")
	size, act := hidden/heads, activation(p.text("activation_function", "gelu_new"))
	norm := func(name string, x []float64) []float64 {
		return layerNorm(x, p.values(name+".weight"), p.values(name+".bias"), p.number("layer_norm_epsilon", 1e-5))
	}
	h := make([][]float64, len(in.Tokens))
	for t, token := range in.Tokens {
		h[t] = add(p.row("transformer.wte.weight", int(token), hidden), p.row("transformer.wpe.weight", t, hidden))
	}
	for layer := range p.count("n_layer") {
		at := fmt.Sprintf("transformer.h.%d.", layer)
		keys, values := make([][][]float64, heads), make([][][]float64, heads)
		for t := range h {
			qkv := p.conv1D(at+"attn.c_attn", norm(at+"ln_1", h[t]))
			var z []float64
			for n := range heads {
				part := func(i int) []float64 { return qkv[i*hidden+n*size : i*hidden+(n+1)*size] }
				keys[n], values[n] = append(keys[n], part(1)), append(values[n], part(2))
				z = append(z, dotAttention(part(0), keys[n], values[n])...)
			}
			h[t] = add(h[t], p.conv1D(at+"attn.c_proj", z))
			z = p.conv1D(at+"mlp.c_fc", norm(at+"ln_2", h[t]))
			for i := range z {
				z[i] = act(z[i])
			}
			h[t] = add(h[t], p.conv1D(at+"mlp.c_proj", z))
		}
	}
	head := "lm_head"
	if p.is("tie_word_embeddings", true) {
		head = "transformer.wte"
	}
	for t := range h {
		h[t] = norm("transformer.ln_f", h[t])
		if !p.headless() {
			h[t] = p.linear(head, h[t])
		}
	}
	return h
}
