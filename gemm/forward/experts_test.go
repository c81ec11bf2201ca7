package forward_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// calls records the calls of an Observer.
type calls struct {
	names [][]string
	rows  [][][]float32
}

func (c *calls) Input(names []string, x sgemm.Matrix) error {
	var rows [][]float32
	for i := range x.Rows {
		rows = append(rows, slices.Clone(x.Row(i)))
	}
	c.names, c.rows = append(c.names, slices.Clone(names)), append(c.rows, rows)
	return nil
}

// TestLayersThatShareAnInput checks an Observer's calls in one block.
func TestLayersThatShareAnInput(t *testing.T) {
	for _, test := range []struct {
		base  string
		block int
		want  string // names less what they share, a line for each call; experts left out
	}{
		{"llama-tiny", 0, "self_attn.q_proj self_attn.k_proj self_attn.v_proj\nself_attn.o_proj\nmlp.gate_proj mlp.up_proj\nmlp.down_proj"},
		{"phi3-tiny", 1, "self_attn.qkv_proj\nself_attn.o_proj\nmlp.gate_up_proj\nmlp.down_proj"},
		// Parallel, behind one norm and behind two.
		{"falcon-tiny", 0, "self_attention.query_key_value mlp.dense_h_to_4h\nself_attention.dense\nmlp.dense_4h_to_h"},
		{"gpt_neox-tiny", 0, "attention.query_key_value\nattention.dense\nmlp.dense_h_to_4h\nmlp.dense_4h_to_h"},
		{"deepseek_v2-tiny", 1, "self_attn.q_a_proj self_attn.kv_a_proj_with_mqa\nself_attn.q_b_proj\nself_attn.kv_b_proj\nself_attn.o_proj\n" +
			"mlp.gate mlp.shared_experts.gate_proj mlp.shared_experts.up_proj\nmlp.shared_experts.down_proj"},
		{"deepseek_v2-lite-tiny", 0, "self_attn.q_proj self_attn.kv_a_proj_with_mqa\nself_attn.kv_b_proj\nself_attn.o_proj\nmlp.gate_proj mlp.up_proj\nmlp.down_proj"},
	} {
		m, d := model(t, test.base, nil)
		s, err := d.Start(t.Context(), forward.Stored(m), sequences(64, 5))
		if err != nil {
			t.Fatal(err)
		}
		c := &calls{}
		for i := range test.block + 1 {
			*c = calls{}
			if err := d.Block(t.Context(), i, forward.Stored(m), s, c); err != nil {
				t.Fatal(err)
			}
		}
		var lines []string
		for _, names := range c.names {
			if expert.MatchString(names[0]) {
				continue
			}
			var line []string
			for _, name := range names {
				words := strings.Split(strings.TrimSuffix(name, ".weight"), ".")
				line = append(line, strings.Join(words[slices.IndexFunc(words, func(w string) bool { return w == "0" || w == "1" })+1:], "."))
			}
			lines = append(lines, strings.Join(line, " "))
		}
		if diff := cmp.Diff(strings.Split(test.want, "\n"), lines); diff != "" {
			t.Errorf("%s: (-want +calls)\n%s", test.base, diff)
		}
	}
}

// TestExpertsSeeTheTokensRoutedToThem computes the choice of experts from the router's inputs.
func TestExpertsSeeTheTokensRoutedToThem(t *testing.T) {
	m, d := model(t, "mixtral-tiny", nil)
	w, used := forward.Stored(m), number(t, m, "num_experts_per_tok")
	s, err := d.Start(t.Context(), w, sequences(64, 2))
	if err != nil {
		t.Fatal(err)
	}
	c := &calls{}
	if err := d.Block(t.Context(), 0, w, s, c); err != nil {
		t.Fatal(err)
	}
	router := slices.IndexFunc(c.names, func(names []string) bool { return strings.HasSuffix(names[0], "block_sparse_moe.gate.weight") })
	weight, err := w.Tensor(t.Context(), c.names[router][0])
	if err != nil {
		t.Fatal(err)
	}
	hidden := len(c.rows[router][0])
	want := make([][][]float32, len(weight)/hidden) // by expert
	for _, x := range c.rows[router] {
		logits := make([]float64, len(want))
		for e := range logits {
			for i, v := range x {
				logits[e] += float64(v) * float64(weight[e*hidden+i])
			}
		}
		for range used {
			best := 0
			for e, v := range logits {
				if v > logits[best] {
					best = e
				}
			}
			want[best] = append(want[best], x)
			logits[best] = math.Inf(-1)
		}
	}
	var given [][][]float32
	for i, names := range c.names {
		if i > router && strings.HasSuffix(names[0], ".w1.weight") {
			given = append(given, c.rows[i])
		}
	}
	idle := slices.DeleteFunc(slices.Clone(want), func(rows [][]float32) bool { return rows != nil })
	if len(idle) == 0 {
		t.Fatal("every expert has a token: there is none without")
	}
	want = slices.DeleteFunc(want, func(rows [][]float32) bool { return rows == nil })
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("(-routed to experts +given to them)\n%s", diff)
	}
}
