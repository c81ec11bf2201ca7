package reference

import "math"

// gemma computes Gemma 1: norms multiply by 1 + weight; embeddings are scaled by √hidden and tied.
func gemma(p *model, in Inputs) [][]float64 {
	p.mustBeCausal()
	return p.gemma("hidden_act").run(in)
}

func (p *model) mustBeCausal() {
	if p.is("use_bidirectional_attention", false) {
		failf("config.json: use_bidirectional_attention is not supported for %s", p.text("model_type", ""))
	}
}

func (p *model) gemma(act string) *decoder {
	p.presume("head_dim", 256.0)
	p.presume("tie_word_embeddings", true)
	d := p.llama()
	d.embedding = math.Sqrt(float64(d.hidden))
	d.act = activation(p.text(act, "gelu_pytorch_tanh"))
	d.norm = func(name string, x []float64) []float64 {
		w := append([]float64{}, p.values(name+".weight")...)
		for i := range w {
			w[i]++
		}
		return rmsNorm(x, w, d.epsilon)
	}
	return d
}

// gemma2 computes Gemma 2: norms also after attention and MLP, soft caps, a sliding window in every other layer.
func gemma2(p *model, in Inputs) [][]float64 {
	p.mustBeCausal()
	return p.gemma2().run(in)
}

func (p *model) gemma2() *decoder {
	p.presume("num_attention_heads", 8.0)
	p.presume("num_key_value_heads", 4.0)
	d := p.gemma("hidden_activation")
	d.norms = [4]string{"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"}
	d.sees = p.slidingIn(func(layer int) bool { return layer%2 == 0 }, p.window(4096))
	score, capped := p.queryScale(), softCap(p.optionalNumber("attn_logit_softcapping", 50))
	d.score = func(qk float64) float64 { return capped(score(qk)) }
	d.logit = softCap(p.optionalNumber("final_logit_softcapping", 30))
	return d
}

// queryScale returns the function that scales q·k. config.json's query_pre_attn_scalar replaces the head size.
func (p *model) queryScale() func(qk float64) float64 {
	size := p.number("query_pre_attn_scalar", 256)
	return func(qk float64) float64 { return qk / math.Sqrt(size) }
}

// softCap returns the function that limits values to ±limit; 0 means no limit.
func softCap(limit float64) func(float64) float64 {
	return func(x float64) float64 {
		if limit == 0 {
			return x
		}
		return limit * math.Tanh(x/limit)
	}
}

// gemma3 computes the language model of Gemma 3: norms on q and k replace the soft cap of scores, and five of six
// layers have a sliding window with its own rotary frequencies.
func gemma3(p *model, in Inputs) [][]float64 { return p.gemma3().run(in) }

func (p *model) gemma3() *decoder {
	d := p.gemma2()
	d.normHeads()
	d.score, d.logit = p.queryScale(), softCap(p.optionalNumber("final_logit_softcapping", 0))
	every := p.count("sliding_window_pattern", 6)
	slides := func(layer int) bool {
		return p.slides(layer, func(layer int) bool { return (layer+1)%every != 0 })
	}
	width, both := p.window(4096), p.is("use_bidirectional_attention", false)
	if both && width > 0 {
		width = width/2 + 1 // to either side
	}
	d.sees = func(layer, t, u int) bool {
		near := width == 0 || !slides(layer) || max(t-u, u-t) < width
		return near && (both || u <= t)
	}
	d.rope = func(layer int) rotary {
		if p.field("rope_parameters") == nil {
			if slides(layer) { // not scaled
				return p.rotaryAt("", p.number("rope_local_base_freq", 1e4), d.size)
			}
			return p.rotaryAt("rope_scaling.", p.number("rope_theta", 1e6), d.size)
		}
		if slides(layer) {
			at := "rope_parameters.sliding_attention."
			return p.rotaryAt(at, p.number(at+"rope_theta", 1e4), d.size)
		}
		at := "rope_parameters.full_attention."
		return p.rotaryAt(at, p.number(at+"rope_theta", 1e6), d.size)
	}
	return d
}
