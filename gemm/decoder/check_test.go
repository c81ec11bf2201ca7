package decoder_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

func TestCheck(t *testing.T) {
	zeros := func(n int) []int32 { return make([]int32, n) }
	for _, test := range []struct {
		name    string
		changes fields
		tokens  [][]int32
		want    string // empty: no error
	}{
		{"llama-tiny", nil, nil, "there are no sequences"},
		{"llama-tiny", nil, [][]int32{{1, 2}, {3}}, "sequence 1 has 1 token: give at least two"},
		{"llama-tiny", nil, [][]int32{{1, 127}, {3, 4, 128}}, "sequence 1, position 2: token 128 is outside the vocabulary of 128"},
		{"llama-tiny", nil, [][]int32{{1, -1}}, "sequence 0, position 1: token -1"},
		{"llama-tiny", nil, [][]int32{zeros(64), zeros(65)}, "sequence 1 has 65 tokens, but the model takes at most 64"},
		{"llama-tiny", fields{"sliding_window": 16}, [][]int32{zeros(17)}, "at most 16"},
		{"llama-tiny", fields{"max_position_embeddings": nil}, [][]int32{zeros(2049)}, "at most 2048"},
		{"gpt2-tiny", nil, [][]int32{zeros(33)}, "at most 32"},
		{"gpt2-tiny", nil, [][]int32{zeros(32)}, ""},
		{"bloom-tiny", nil, [][]int32{zeros(1 << 20)}, ""}, // ALiBi has no last position
	} {
		d, err := describe(t, test.name, test.changes)
		testmodel.OK(t, err)
		if err = d.Check(test.tokens); test.want == "" {
			testmodel.OK(t, err)
		} else {
			testmodel.WantError(t, err, test.want)
		}
	}
}
