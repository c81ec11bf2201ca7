package decoder_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// mustDescribe describes a small random model without changes.
func mustDescribe(t *testing.T, name string) *decoder.Decoder {
	t.Helper()
	d, err := describe(t, name, nil)
	testmodel.OK(t, err)
	return d
}

// TestLlama compares the whole description of a small model, with one of its two blocks.
func TestLlama(t *testing.T) {
	got := mustDescribe(t, "llama-tiny")
	if len(got.Blocks) != 2 {
		t.Fatalf("%d blocks, want 2", len(got.Blocks))
	}
	got.Blocks = got.Blocks[1:]
	norm := func(name string) decoder.Norm {
		return decoder.Norm{Kind: arch.RMSNorm, Weight: "model." + name + ".weight", Width: 48, Epsilon: 1e-5}
	}
	linear := func(name string, inputs, outputs int) decoder.Linear {
		return decoder.Linear{Weight: "model.layers.1." + name + ".weight", Inputs: inputs, Outputs: outputs}
	}
	var radians []float32
	for i := range 6 {
		radians = append(radians, float32(math.Pow(10000, -float64(i)/6)))
	}
	want := &decoder.Decoder{Family: "llama", Hidden: 48, Vocab: 128, Limit: 64,
		Embedding: decoder.Embedding{Tokens: "model.embed_tokens.weight", Scale: 1},
		Blocks: []decoder.Block{{
			{{Norm: norm("layers.1.input_layernorm"), Parts: []decoder.Part{{Scale: 1, Attention: &decoder.Attention{
				Heads:  decoder.Heads{Queries: 6, KV: 2, Size: 12, ValueSize: 12},
				In:     []decoder.Linear{linear("self_attn.q_proj", 48, 72), linear("self_attn.k_proj", 48, 24), linear("self_attn.v_proj", 48, 24)},
				Rotary: &decoder.Rotary{Frequencies: decoder.Frequencies{Radians: radians, Length: 1}},
				Scale:  float32(1 / math.Sqrt(12)),
				Out:    linear("self_attn.o_proj", 72, 48),
			}}}}},
			{{Norm: norm("layers.1.post_attention_layernorm"), Parts: []decoder.Part{{Scale: 1, FFN: &decoder.FFN{
				In:    []decoder.Linear{linear("mlp.gate_proj", 48, 100), linear("mlp.up_proj", 48, 100)},
				Gated: true, Activation: decoder.SiLU,
				Out: linear("mlp.down_proj", 100, 48),
			}}}}},
		}},
		Head: decoder.Head{Norm: norm("norm"), Linear: decoder.Linear{Weight: "lm_head.weight", Inputs: 48, Outputs: 128}, Scale: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +described)\n%s", diff)
	}
}

func TestLearnedPositionsAndStoredTransposed(t *testing.T) {
	d := mustDescribe(t, "gpt2-tiny")
	want := decoder.Embedding{Tokens: "transformer.wte.weight", Scale: 1, Positions: "transformer.wpe.weight", PositionRows: 32}
	if diff := cmp.Diff(want, d.Embedding); diff != "" || d.Limit != 32 {
		t.Errorf("limit %d, embedding (-want +described)\n%s", d.Limit, diff)
	}
	in := d.Blocks[0][0][0].Parts[0].Attention.In
	if diff := cmp.Diff([]decoder.Linear{{Weight: "transformer.h.0.attn.c_attn.weight", Bias: "transformer.h.0.attn.c_attn.bias",
		Inputs: 40, Outputs: 120, Transposed: true}}, in); diff != "" {
		t.Errorf("(-want +described)\n%s", diff)
	}
	if !d.Head.Tied || d.Head.Linear.Weight != d.Embedding.Tokens {
		t.Errorf("head %+v, want the embedding", d.Head)
	}
	if opt := mustDescribe(t, "opt-tiny"); opt.Embedding.Offset != 2 || opt.Limit != opt.Embedding.PositionRows-2 {
		t.Errorf("opt: limit %d, embedding %+v, want positions from row 2 on", opt.Limit, opt.Embedding)
	}
}

func TestCapsWindowsAndNormsOfOutputs(t *testing.T) {
	d := mustDescribe(t, "gemma2-tiny")
	var windows []int
	for _, b := range d.Blocks {
		p := b[0][0].Parts[0]
		windows = append(windows, p.Attention.Window)
		if p.Attention.Cap != 2 || p.Norm.Kind != arch.RMSNorm1p || p.Norm.Width != 36 {
			t.Errorf("cap %v, norm %+v", p.Attention.Cap, p.Norm)
		}
	}
	if !slices.Equal(windows, []int{4, 0}) || d.Head.Cap != 1.5 || d.Embedding.Scale != 6 {
		t.Errorf("windows %v, cap of logits %v, scale of embedding %v", windows, d.Head.Cap, d.Embedding.Scale)
	}
}

// TestParallelBranches: attention and FFN read the same stream, behind two norms or behind one.
func TestParallelBranches(t *testing.T) {
	for name, want := range map[string][]int{"falcon-40b-tiny": {1, 1}, "falcon-tiny": {2}} {
		b := mustDescribe(t, name).Blocks[0]
		var parts []int
		for _, branch := range b[0] {
			parts = append(parts, len(branch.Parts))
		}
		if len(b) != 1 || !slices.Equal(parts, want) {
			t.Errorf("%s: %d steps, parts of the first one's branches %v, want %v", name, len(b), parts, want)
		}
	}
}

func TestLatentAttentionAndExperts(t *testing.T) {
	d := mustDescribe(t, "deepseek_v3-tiny")
	a := d.Blocks[1][0][0].Parts[0].Attention
	if l := a.Latent; a.In != nil || l == nil || l.Shared != 4 || l.Queries.Missing() || l.Down[1].Outputs != l.KV.Norm.Width+4 {
		t.Errorf("latent %+v", a.Latent)
	}
	if want := (decoder.Heads{Queries: 6, KV: 6, Size: 10, ValueSize: 5, ByHead: true}); a.Heads != want || a.Rotary.First != 6 || !a.Rotary.Neighbours {
		t.Errorf("heads %+v, rotary %+v", a.Heads, a.Rotary)
	}
	parts := d.Blocks[1][1][0].Parts
	if len(parts) != 2 || parts[0].Experts == nil || parts[1].FFN == nil {
		t.Fatalf("parts %+v, want routed experts and a shared one", parts)
	}
	e := parts[0].Experts
	if want := (decoder.Routing{Used: 3, Sigmoid: true, Normalize: true, Scale: 2.5, Groups: 4, GroupsUsed: 2, Best: 2}); e.Routing != want {
		t.Errorf("routing %+v, want %+v", e.Routing, want)
	}
	if len(e.Each) != 8 || !e.Each[7].Out.Routed || e.Each[7].Out.Weight != "model.layers.1.mlp.experts.7.down_proj.weight" ||
		e.Correction != "model.layers.1.mlp.gate.e_score_correction_bias" {
		t.Errorf("%d experts, the last %+v, correction %q", len(e.Each), e.Each[len(e.Each)-1].Out, e.Correction)
	}
	if lite := mustDescribe(t, "deepseek_v2-lite-tiny").Blocks[0][0][0].Parts[0].Attention.Latent; !lite.Queries.Missing() {
		t.Errorf("queries are raised by %+v, want the first layer to make them", lite.Queries)
	}
}

func TestLongSequencesHaveFrequenciesOfTheirOwn(t *testing.T) {
	r := mustDescribe(t, "phi3-long-tiny").Blocks[0][0][0].Parts[0].Attention.Rotary
	if r.Long == nil || r.LongFrom != 8 || len(r.Long.Radians) != 3 || r.Long.Radians[2] >= r.Radians[2] {
		t.Errorf("rotary %+v, want slower turns of 3 pairs beyond 8 positions", r)
	}
}

// TestActivations: config.json may have several names for one activation.
func TestActivations(t *testing.T) {
	for name, want := range map[string]decoder.Activation{
		"gelu": decoder.GELU, "gelu_new": decoder.GELUTanh, "gelu_fast": decoder.GELUTanh, "gelu_pytorch_tanh": decoder.GELUTanh,
		"relu": decoder.ReLU, "silu": decoder.SiLU, "swish": decoder.SiLU,
	} {
		d, err := describe(t, "llama-tiny", fields{"hidden_act": name})
		testmodel.OK(t, err)
		if got := d.Blocks[0][1][0].Parts[0].FFN.Activation; got != want {
			t.Errorf("%s is activation %d, want %d", name, got, want)
		}
	}
}

// TestLayers checks that layers are in the order of computation.
func TestLayers(t *testing.T) {
	d := mustDescribe(t, "deepseek_v2-lite-tiny")
	var names []string
	for _, l := range d.Layers() {
		if l.Block == 0 || l.Block == len(d.Blocks) {
			names = append(names, l.Tensor)
		}
	}
	want := []string{"lm_head.weight"}
	for i, kind := range []string{"self_attn.q_proj", "self_attn.kv_a_proj_with_mqa", "self_attn.kv_b_proj", "self_attn.o_proj",
		"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
		want = slices.Insert(want, i, "model.layers.0."+kind+".weight")
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +listed)\n%s", diff)
	}
}
