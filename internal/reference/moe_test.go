package reference

import (
	"math"
	"slices"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) < 1e-12) {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}

func TestRouters(t *testing.T) {
	scores := softmax([]float64{0, math.Log(3), math.Log(4), 0, 0})
	chosen := normalised(choose(2, scores, scores))
	if len(chosen) != 2 || chosen[0].expert != 2 || chosen[1].expert != 1 {
		t.Fatalf("the choice is %v, not experts 2 and 1", chosen)
	}
	near(t, "first share", chosen[0].factor, 4.0/7)
	near(t, "both shares", chosen[0].factor+chosen[1].factor, 1)

	// A correction changes the choice, but not the weights.
	corrected := choose(1, add(scores, []float64{0, 0, 0, 0, 1}), scores)
	if corrected[0].expert != 4 || corrected[0].factor != scores[4] {
		t.Errorf("corrected choice is %v", corrected)
	}

	// The best expert is in group {0, 1}; the best pair is in {2, 3}.
	rank := []float64{9, 0, 6, 5, 1, 1}
	if got := limit(rank, 3, 1, slices.Max, 0); !slices.Equal(got, []float64{9, 0, 0, 0, 0, 0}) {
		t.Errorf("the group of the best leaves %v", got)
	}
	if got := limit(rank, 3, 1, topTwo, -1); !slices.Equal(got, []float64{-1, -1, 6, 5, -1, -1}) {
		t.Errorf("the group of the best two leaves %v", got)
	}
}

func TestALiBiSlopes(t *testing.T) {
	for n, want := range []float64{1. / 4, 1. / 16, 1. / 64, 1. / 256, 1. / 2, 1. / 8} { // the paper's slopes for 4 heads, and 2 slopes between them
		near(t, "6 heads", alibiSlopes(6)[n], want)
	}
	near(t, "first of 8 heads", alibiSlopes(8)[0], 1./2)
	near(t, "last of 8 heads", alibiSlopes(8)[7], 1./256)
	near(t, "first of 16 heads", alibiSlopes(16)[0], math.Sqrt(1./2))
}

func TestYaRN(t *testing.T) {
	defer problems(t)
	// DeepSeek-V3's parameters: pairs up to 10 turn at least 32 times in 4096 positions, and pairs from 23 on less
	// than once.
	p := &model{fields: fields{"rope_scaling": fields{
		"type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096.0,
		"beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
	}}}
	plainly, yarn := (&model{}).rotary(64), p.rotary(64)
	for i, want := range map[int]float64{0: 1, 10: 1, 14: 9./13 + 4./13/40, 23: 1. / 40, 31: 1. / 40} {
		near(t, "frequency", yarn.frequency[i]/plainly.frequency[i], want)
	}
	near(t, "scale where both factors are the same", yarn.scale, 1)
	near(t, "scale of scores", math.Sqrt(p.latentScale()), 0.1*math.Log(40)+1)
	delete(p.fields["rope_scaling"].(fields), "mscale")
	near(t, "scale by the paper", p.rotary(64).scale, 0.1*math.Log(40)+1)
}

func TestFieldsMatter(t *testing.T) {
	for _, c := range []struct {
		config, field string
		value         any
	}{
		{"gpt_neox-tiny", "rotary_pct", 0.25},
		{"gpt_neox-tiny", "rotary_emb_base", 100},
		{"gpt_neox-tiny", "use_parallel_residual", false},
		{"starcoder2-tiny", "sliding_window", nil},
		{"starcoder2-tiny", "norm_epsilon", 0.1},
		{"mixtral-tiny", "sliding_window", 3},
		{"mixtral-tiny", "num_experts_per_tok", 1},
		{"qwen3_moe-tiny", "norm_topk_prob", false},
		{"deepseek_v2-tiny", "topk_method", "greedy"},
		{"deepseek_v2-tiny", "routed_scaling_factor", 1},
		{"deepseek_v2-tiny", "rope_scaling", nil},
		{"deepseek_v3-tiny", "rope_interleave", false},
		{"deepseek_v3-tiny", "topk_group", 1},
		{"deepseek_v3-tiny", "norm_topk_prob", false},
	} {
		tokens := []int32{1, 7, 1, 9, 30, 2, 2, 5, 8}
		before := logits(t, changed(t, c.config, nil), tokens...)
		if after := logits(t, changed(t, c.config, fields{c.field: c.value}), tokens...); apart(before, after) == 0 {
			t.Errorf("%s: %s has no effect", c.config, c.field)
		}
	}
}
