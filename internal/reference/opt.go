package reference

import "fmt"

// opt computes OPT and Galactica. Positions count from 2. The 350M model has norms after the layers, and embeddings
// of another width.
func opt(p *model, in Inputs) [][]float64 {
	hidden, heads := p.count("hidden_size"), p.count("num_attention_heads")
	width, before := p.count("word_embed_proj_dim", hidden), p.is("do_layer_norm_before", true)
	act := activation(p.text("activation_function", "relu"))
	at := p.under("embed_tokens.weight", "model.decoder.", "decoder.", "", "language_model.model.decoder.")
	norm := func(name string) func([]float64) []float64 {
		if p.is("layer_norm_elementwise_affine", true) {
			return p.layerNorm(name, 1e-5)
		}
		return func(x []float64) []float64 { return layerNorm(x, ones(len(x)), nil, 1e-5) }
	}
	// branch returns h + f(norm(h)), or norm(h + f(h)).
	branch := func(h [][]float64, norm func([]float64) []float64, f func([][]float64) [][]float64) [][]float64 {
		if before {
			return plus(h, f(each(h, norm)))
		}
		return each(plus(h, f(h)), norm)
	}

	h := make([][]float64, len(in.Tokens))
	for t, token := range in.Tokens {
		h[t] = p.row(at+"embed_tokens.weight", int(token), width)
		if width != hidden {
			h[t] = p.linear(at+"project_in", h[t])
		}
		h[t] = add(h[t], p.row(at+"embed_positions.weight", t+2, hidden))
	}
	for layer := range p.count("num_hidden_layers") {
		at := fmt.Sprintf("%slayers.%d.", at, layer)
		h = branch(h, norm(at+"self_attn_layer_norm"), func(x [][]float64) [][]float64 {
			return p.selfAttention(at+"self_attn.", x, heads, backwards)
		})
		h = branch(h, norm(at+"final_layer_norm"), func(x [][]float64) [][]float64 {
			return each(x, p.mlp(at+"fc1", at+"fc2", act))
		})
	}
	if before && !p.is("_remove_final_layer_norm", false) {
		h = each(h, norm(at+"final_layer_norm"))
	}
	if width != hidden {
		h = each(h, p.layer(at+"project_out"))
	}
	switch {
	case p.headless():
		return h
	case p.is("tie_word_embeddings", true):
		return each(h, p.layer(at+"embed_tokens"))
	}
	return each(h, p.layer(p.under("lm_head.weight", "", "language_model.")+"lm_head"))
}

// selfAttention computes the attention of OPT and Whisper: q_proj, k_proj, v_proj and out_proj.
func (p *model) selfAttention(at string, x [][]float64, heads int, bias func(head, t, u int) float64) [][]float64 {
	return p.crossAttention(at, x, x, heads, bias)
}

// crossAttention is selfAttention with queries from x, and keys and values from seen.
func (p *model) crossAttention(at string, x, seen [][]float64, heads int, bias func(head, t, u int) float64) [][]float64 {
	q, k, v := each(x, p.layer(at+"q_proj")), each(seen, p.layer(at+"k_proj")), each(seen, p.layer(at+"v_proj"))
	return each(multiHead(q, k, v, heads, bias), p.layer(at+"out_proj"))
}

func ones(n int) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = 1
	}
	return y
}
