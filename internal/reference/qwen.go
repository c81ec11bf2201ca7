package reference

// qwen2 computes Qwen2 and 2.5: biases on q, k and v; the later layers may have a sliding window.
func qwen2(p *model, in Inputs) [][]float64 { return p.qwen2().run(in) }

func (p *model) qwen2() *decoder {
	d := p.llama()
	if p.is("use_sliding_window", false) {
		first := p.count("max_window_layers", 28)
		d.sees = p.slidingIn(func(layer int) bool { return layer >= first }, p.window(4096))
	}
	return d
}

// qwen3 computes Qwen3: a norm on each head's q and k before the rotary positions.
func qwen3(p *model, in Inputs) [][]float64 { return p.qwen3().run(in) }

func (p *model) qwen3() *decoder {
	p.presume("head_dim", 128.0)
	d := p.qwen2()
	d.normHeads()
	return d
}

// normHeads normalises each head's q and k. All heads share the norm's weights.
func (d *decoder) normHeads() {
	project := d.project
	d.project = func(at string, x []float64) (q, k, v []float64) {
		q, k, v = project(at, x)
		return d.eachHead(at+"self_attn.q_norm", q), d.eachHead(at+"self_attn.k_norm", k), v
	}
}

func (d *decoder) eachHead(norm string, x []float64) (y []float64) {
	for i := 0; i < len(x); i += d.size {
		y = append(y, d.norm(norm, x[i:i+d.size])...)
	}
	return y
}
