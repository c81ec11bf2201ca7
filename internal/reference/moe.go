package reference

import (
	"cmp"
	"fmt"
	"slices"
)

// choice is an expert chosen by the router, with the weight of its output.
type choice struct {
	expert int
	factor float64
}

// choose returns the n experts of highest rank, with their scores as weights.
func choose(n int, rank, scores []float64) []choice {
	same(rank, scores)
	if n > len(scores) {
		failf("config.json: the router chooses %d experts, but there are only %d", n, len(scores))
	}
	all := make([]choice, len(scores))
	for e, s := range scores {
		all[e] = choice{e, s}
	}
	slices.SortStableFunc(all, func(a, b choice) int { return cmp.Compare(rank[b.expert], rank[a.expert]) })
	return all[:n]
}

// normalised scales the weights of the choices to a sum of 1.
func normalised(choices []choice) []choice {
	total := 0.0
	for _, c := range choices {
		total += c.factor
	}
	return scaled(choices, 1/total)
}

func scaled(choices []choice, s float64) []choice {
	after := slices.Clone(choices)
	for i := range after {
		after[i].factor *= s
	}
	return after
}

// limit keeps the ranks of experts in the best groups. All other ranks become excluded. merit ranks a group by its
// experts' ranks.
func limit(rank []float64, groups, keep int, merit func(group []float64) float64, excluded float64) []float64 {
	if groups < 1 || len(rank)%groups != 0 {
		failf("config.json: %d experts cannot be divided into %d groups", len(rank), groups)
	}
	merits, size := make([]float64, groups), len(rank)/groups
	for g := range merits {
		merits[g] = merit(rank[g*size : (g+1)*size])
	}
	limited := slices.Repeat([]float64{excluded}, len(rank))
	for _, g := range choose(keep, merits, merits) {
		copy(limited[g.expert*size:(g.expert+1)*size], rank[g.expert*size:])
	}
	return limited
}

// mix returns the weighted sum of the chosen experts' outputs for x. The names of their tensors begin with at and the
// expert's number.
func (d *decoder) mix(choices []choice, at, gate, up, down string, x []float64) []float64 {
	y := make([]float64, d.hidden)
	for _, c := range choices {
		e := fmt.Sprintf("%s.%d.", at, c.expert)
		y = add(y, times(d.gatedMLP(e+gate, e+up, e+down, x), c.factor))
	}
	return y
}

// mixtral computes Mixtral: a Mistral with a router that sends each position to a few experts.
func mixtral(p *model, in Inputs) [][]float64 {
	p.presume("num_key_value_heads", 8.0)
	p.presume("rms_norm_eps", 1e-5)
	p.presume("rope_theta", 1e6)
	d := p.llama()
	if width := p.window(0); width > 0 {
		d.sees = sliding(width)
	}
	d.mlp = func(_ int, at string, x []float64) []float64 {
		at += "block_sparse_moe."
		scores := softmax(p.linear(at+"gate", x))
		choices := normalised(choose(p.count("num_experts_per_tok", 2), scores, scores))
		return d.mix(choices, at+"experts", "w1", "w3", "w2", x)
	}
	return d.run(in)
}

// qwen3MoE computes Qwen3's variant with experts in some or all layers.
func qwen3MoE(p *model, in Inputs) [][]float64 {
	p.presume("num_key_value_heads", 4.0)
	d := p.llama()
	d.normHeads()
	if width := p.window(4096); width > 0 && p.is("use_sliding_window", false) {
		d.sees = sliding(width)
	}
	dense := d.mlp
	d.mlp = func(layer int, at string, x []float64) []float64 {
		if !p.sparse(layer) {
			return dense(layer, at, x)
		}
		at += "mlp."
		scores := softmax(p.linear(at+"gate", x))
		choices := choose(p.count("num_experts_per_tok", 8), scores, scores)
		if p.is("norm_topk_prob", false) {
			choices = normalised(choices)
		}
		return d.mix(choices, at+"experts", "gate_proj", "up_proj", "down_proj", x)
	}
	return d.run(in)
}

// sparse reports whether a layer of a Qwen has experts.
func (p *model) sparse(layer int) bool {
	dense, _ := p.field("mlp_only_layers").([]any)
	return (layer+1)%p.count("decoder_sparse_step", 1) == 0 && !slices.Contains(dense, any(float64(layer)))
}
