package reference

import "math"

// phi3 computes Phi-3 and Phi-4: fused projections, rotary positions in a part of each head.
func phi3(p *model, in Inputs) [][]float64 {
	p.presume("rms_norm_eps", 1e-5)
	d := p.llama()
	d.project = func(at string, x []float64) (q, k, v []float64) {
		z, n, m := p.linear(at+"self_attn.qkv_proj", x), d.heads*d.size, d.kv*d.size
		return z[:n], z[n : n+m], z[n+m:]
	}
	d.mlp = func(_ int, at string, x []float64) []float64 {
		z := p.linear(at+"mlp.gate_up_proj", x)
		return p.linear(at+"mlp.down_proj", gated(d.act, z[:len(z)/2], z[len(z)/2:]))
	}
	d.sees = sliding(p.window(0))
	part := p.number("rope_parameters.partial_rotary_factor", p.number("partial_rotary_factor", 1))
	d.rope = func(int) rotary { return p.phiRotary(int(part*float64(d.size)), len(in.Tokens)) }
	return d.run(in)
}

// phiRotary is rotary for a sequence of a given length. LongRoPE divides each frequency by its own factor. Beyond the
// original training length, it uses a second set of factors.
func (p *model) phiRotary(size, length int) rotary {
	at := "rope_scaling."
	if p.field("rope_parameters") != nil {
		at = "rope_parameters."
	}
	switch p.text(at+"rope_type", p.text(at+"type", "default")) {
	case "longrope", "su", "yarn": // Phi-3's names for the same method
	default:
		return p.rotary(size)
	}
	first := p.number("original_max_position_embeddings", 4096)
	list := at + "short_factor"
	if float64(length) > first {
		list = at + "long_factor"
	}
	factors, _ := p.field(list).([]any)
	if len(factors) != size/2 {
		failf("config.json: %s has %d numbers for %d frequencies", list, len(factors), size/2)
	}
	theta := p.number(at+"rope_theta", p.number("rope_theta", 10000))
	r := rotary{scale: p.number(at+"attention_factor", longScale(p.number(at+"factor", p.number("max_position_embeddings", 4096)/first), first))}
	for i, factor := range factors {
		f, ok := factor.(float64)
		if !ok {
			failf("config.json: %s has %v, which is not a number", list, factor)
		}
		r.frequency = append(r.frequency, math.Pow(theta, -2*float64(i)/float64(size))/f)
	}
	return r
}

// longScale returns LongRoPE's scale of q and k, for a context extended by factor.
func longScale(factor, first float64) float64 {
	if factor <= 1 {
		return 1
	}
	return math.Sqrt(1 + math.Log(factor)/math.Log(first))
}
