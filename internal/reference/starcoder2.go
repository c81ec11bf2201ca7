package reference

// starcoder2 computes StarCoder2: a Llama with LayerNorms, biases, a sliding window, and an FFN without a gate.
func starcoder2(p *model, in Inputs) [][]float64 {
	p.presume("num_key_value_heads", 2.0)
	p.presume("hidden_act", "gelu_pytorch_tanh")
	p.presume("tie_word_embeddings", true)
	d := p.llama()
	d.norm = func(name string, x []float64) []float64 { return p.layerNorm(name, p.number("norm_epsilon", 1e-5))(x) }
	if width := p.window(0); width > 0 {
		d.sees = sliding(width)
	}
	d.mlp = func(_ int, at string, x []float64) []float64 {
		return p.mlp(at+"mlp.c_fc", at+"mlp.c_proj", d.act)(x)
	}
	return d.run(in)
}
