package forward

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

func TestChoose(t *testing.T) {
	logits := []float32{0, 3, 1, 2, 2, -1} // in groups of two: 0 3, 1 2, 2 -1
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	total := 0.0
	for _, v := range logits {
		total += math.Exp(float64(v))
	}
	soft := func(x float64) float64 { return math.Exp(x) / total }
	for _, test := range []struct {
		name       string
		routing    decoder.Routing
		correction []float32
		want       []choice
	}{
		{"softmax, first of equals", decoder.Routing{Used: 2, Scale: 1}, nil, []choice{{1, soft(3)}, {3, soft(2)}}},
		{"normalised and scaled", decoder.Routing{Used: 2, Scale: 4, Normalize: true}, nil, []choice{{1, 4 * soft(3) / (soft(3) + soft(2))}, {3, 4 * soft(2) / (soft(3) + soft(2))}}},
		{"the group with the best one", decoder.Routing{Used: 2, Scale: 1, Groups: 3, GroupsUsed: 1, Best: 1}, nil, []choice{{1, soft(3)}, {0, soft(0)}}},
		{"the group with the best two", decoder.Routing{Used: 2, Scale: 1, Groups: 3, GroupsUsed: 1, Best: 2, Sigmoid: true}, nil, []choice{{3, sigmoid(2)}, {2, sigmoid(1)}}},
		{"corrected choice, own weight", decoder.Routing{Used: 1, Scale: 1, Sigmoid: true}, []float32{0, 0, 0, 0, 0, 1}, []choice{{5, sigmoid(-1)}}},
	} {
		got := choose(test.routing, logits, test.correction)
		near := cmp.Comparer(func(a, b choice) bool { return a.expert == b.expert && math.Abs(a.weight-b.weight) < 1e-12 })
		if diff := cmp.Diff(test.want, got, near); diff != "" {
			t.Errorf("%s: (-want +chosen)\n%s", test.name, diff)
		}
	}
}
