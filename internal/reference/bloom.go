package reference

import "fmt"

// bloom computes BLOOM: a norm after the embeddings; q, k and v fused head by head; ALiBi.
func bloom(p *model, in Inputs) [][]float64 {
	hidden := p.count("n_embed", p.count("hidden_size", 0))
	heads := p.count("n_head", p.count("num_attention_heads", 0))
	at, size, act := p.under("word_embeddings.weight", "transformer.", ""), hidden/heads, activation("gelu_new")
	slopes := alibiSlopes(heads)
	alibi := func(head, t, u int) float64 { return backwards(head, t, u) + slopes[head]*float64(u) }
	norm := func(name string) func([]float64) []float64 {
		return p.layerNorm(name, p.number("layer_norm_epsilon", 1e-5))
	}
	// branch adds f(norm(h)) to h, or to norm(h).
	branch := func(h [][]float64, norm func([]float64) []float64, f func([][]float64) [][]float64) [][]float64 {
		x := each(h, norm)
		if p.is("apply_residual_connection_post_layernorm", false) {
			h = x
		}
		return plus(h, f(x))
	}

	h := make([][]float64, len(in.Tokens))
	for t, token := range in.Tokens {
		h[t] = p.row(at+"word_embeddings.weight", int(token), hidden)
	}
	h = each(h, norm(at+"word_embeddings_layernorm"))
	for layer := range p.count("n_layer", p.count("num_hidden_layers", 0)) {
		at := fmt.Sprintf("%sh.%d.", at, layer)
		h = branch(h, norm(at+"input_layernorm"), func(x [][]float64) [][]float64 {
			qkv := each(x, p.layer(at+"self_attention.query_key_value"))
			part := func(i int) [][]float64 { // of the 3·size rows of every head
				return each(qkv, func(x []float64) (y []float64) {
					for n := range heads {
						y = append(y, x[(3*n+i)*size:(3*n+i+1)*size]...)
					}
					return y
				})
			}
			return each(multiHead(part(0), part(1), part(2), heads, alibi), p.layer(at+"self_attention.dense"))
		})
		h = branch(h, norm(at+"post_attention_layernorm"), func(x [][]float64) [][]float64 {
			return each(x, p.mlp(at+"mlp.dense_h_to_4h", at+"mlp.dense_4h_to_h", act))
		})
	}
	h = each(h, norm(at+"ln_f"))
	switch {
	case p.headless():
		return h
	case p.is("tie_word_embeddings", true):
		return each(h, p.layer(at+"word_embeddings"))
	}
	return each(h, p.layer("lm_head"))
}
