package reference

// olmo2 computes OLMo 2: norms only after attention and MLP, and norms over all of q and all of k.
func olmo2(p *model, in Inputs) [][]float64 {
	p.presume("rms_norm_eps", 1e-5)
	d := p.llama()
	d.norms = [4]string{"", "post_attention_layernorm", "", "post_feedforward_layernorm"}
	project := d.project
	d.project = func(at string, x []float64) (q, k, v []float64) {
		q, k, v = project(at, x)
		return d.norm(at+"self_attn.q_norm", q), d.norm(at+"self_attn.k_norm", k), v
	}
	return d.run(in)
}
