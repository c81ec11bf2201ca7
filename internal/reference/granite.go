package reference

// granite computes Granite 3: Llama with four multipliers.
func granite(p *model, in Inputs) [][]float64 {
	d := p.llama()
	d.embedding, d.branch = p.number("embedding_multiplier", 1), p.number("residual_multiplier", 1)
	d.score = func(qk float64) float64 { return qk * p.number("attention_multiplier", 1) }
	d.logit = func(x float64) float64 { return x / p.number("logits_scaling", 1) }
	return d.run(in)
}
