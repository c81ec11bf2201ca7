package reference

import (
	"math"
	"slices"
)

// deepseekV2 computes DeepSeek-V2 and V2-Lite: latent attention, and routed experts beside shared experts.
func deepseekV2(p *model, in Inputs) [][]float64 {
	d := p.deepseek(rotary.neighbours)
	d.mlp = d.shared(func(at string, x []float64) []choice {
		scores := softmax(p.linear(at+"gate", x))
		rank := scores
		switch method := p.text("topk_method", "greedy"); method {
		case "greedy":
		case "group_limited_greedy":
			rank = limit(scores, p.count("n_group"), p.count("topk_group"), slices.Max, 0)
		default:
			failf("config.json: topk_method %q is unknown", method)
		}
		return scaled(choose(p.count("num_experts_per_tok"), rank, rank), p.number("routed_scaling_factor", 1))
	})
	return d.run(in)
}

// deepseekV3 computes DeepSeek-V3 and R1: V2's attention, and a router with a bias. The bias affects the choice of
// experts but not their weights.
func deepseekV3(p *model, in Inputs) [][]float64 {
	p.presume("first_k_dense_replace", 3.0)
	turn := rotary.neighbours
	if !p.is("rope_interleave", true) {
		turn = rotary.halves
	}
	d := p.deepseek(turn)
	d.mlp = d.shared(func(at string, x []float64) []choice {
		scores := apply(func(s float64) float64 { return 1 / (1 + math.Exp(-s)) }, p.linear(at+"gate", x))
		rank := scores
		if p.has(at + "gate.e_score_correction_bias") {
			rank = add(scores, p.values(at+"gate.e_score_correction_bias"))
		}
		rank = limit(rank, p.count("n_group", 8), p.count("topk_group", 4), topTwo, math.Inf(-1))
		choices := choose(p.count("num_experts_per_tok", 8), rank, scores)
		if p.is("norm_topk_prob", true) {
			choices = normalised(choices)
		}
		return scaled(choices, p.number("routed_scaling_factor", 2.5))
	})
	return d.run(in)
}

// topTwo returns the sum of the two largest values.
func topTwo(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	if len(sorted) < 2 {
		failf("config.json: a group has %d experts, but needs at least 2", len(sorted))
	}
	return sorted[len(sorted)-1] + sorted[len(sorted)-2]
}

// shared returns the FFN of a DeepSeek: dense in the first layers, and in the others the sum of routed and shared
// experts.
func (d *decoder) shared(route func(at string, x []float64) []choice) func(int, string, []float64) []float64 {
	dense := d.mlp
	return func(layer int, at string, x []float64) []float64 {
		if layer < d.count("first_k_dense_replace", 0) {
			return dense(layer, at, x)
		}
		at += "mlp."
		y := d.mix(route(at, x), at+"experts", "gate_proj", "up_proj", "down_proj", x)
		if d.field("n_shared_experts") != nil {
			at += "shared_experts."
			y = add(y, d.gatedMLP(at+"gate_proj", at+"up_proj", at+"down_proj", x))
		}
		return y
	}
}

// deepseek returns a decoder with multi-head latent attention. Keys and values, and in most models queries, are
// projections of a short normalised vector. Rotary positions use extra channels; all heads share the key's rotary
// channels.
func (p *model) deepseek(turn func(r rotary, x []float64, position int) []float64) *decoder {
	d := p.llama()
	still, turned, value := p.count("qk_nope_head_dim", 128), p.count("qk_rope_head_dim", 64), p.count("v_head_dim", 128)
	rank, rope := p.count("kv_lora_rank", 512), p.rotary(turned)
	scale := p.latentScale() / math.Sqrt(float64(still+turned))
	latentNorm := func(name string, x []float64) []float64 { return rmsNorm(x, p.values(name+".weight"), 1e-6) }
	query := func(at string, x []float64) []float64 {
		if p.field("q_lora_rank") == nil {
			return p.linear(at+"q_proj", x)
		}
		return p.linear(at+"q_b_proj", latentNorm(at+"q_a_layernorm", p.linear(at+"q_a_proj", x)))
	}
	d.attention = func(_ int, at string, x [][]float64) [][]float64 {
		at += "self_attn."
		keys, values := make([][][]float64, d.heads), make([][][]float64, d.heads) // by head and position
		var shared, y [][]float64                                                  // by position
		for t := range x {
			latent := p.linear(at+"kv_a_proj_with_mqa", x[t])
			shared = append(shared, turn(rope, latent[rank:], t))
			kv := p.linear(at+"kv_b_proj", latentNorm(at+"kv_a_layernorm", latent[:rank]))
			q := query(at, x[t])
			var z []float64
			for n := range d.heads {
				kv, q := kv[n*(still+value):(n+1)*(still+value)], q[n*(still+turned):(n+1)*(still+turned)]
				keys[n], values[n] = append(keys[n], kv[:still]), append(values[n], kv[still:])
				positional := turn(rope, q[still:], t)
				z = append(z, attend(values[n], func(u int) float64 {
					return scale * (dot(q[:still], keys[n][u]) + dot(positional, shared[u]))
				})...)
			}
			y = append(y, p.linear(at+"o_proj", z))
		}
		return y
	}
	return d
}

// latentScale returns YaRN's scale of the scores of latent attention.
func (p *model) latentScale() float64 {
	at := "rope_scaling."
	if p.field("rope_parameters") != nil {
		at = "rope_parameters."
	}
	all := p.number(at+"mscale_all_dim", 0)
	if all == 0 || p.text(at+"rope_type", p.text(at+"type", "default")) == "default" {
		return 1
	}
	m := yarnMagnitude(p.number(at+"factor", 1), all)
	return m * m
}
