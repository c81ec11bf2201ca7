package model

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestEvalLeavesOutWhatIsNoNumber: infinite perplexities and intervals of a single sequence are left out.
func TestEvalLeavesOutWhatIsNoNumber(t *testing.T) {
	r := &evalReport{tokens: tokens.Set{Part: tokens.Part{N: 1, T: 2}, Purpose: tokens.Evaluation}}
	scores := func(nats float64) *forward.Scores { return &forward.Scores{Nats: [][]float64{{nats}}} }
	for _, nats := range []float64{1, 1000} {
		if err := r.add("m", scores(1), scores(nats), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	js, err := json.Marshal(r.document())
	if err != nil {
		t.Fatal(err)
	}
	var have struct{ Models []map[string]any }
	if err := json.Unmarshal(js, &have); err != nil {
		t.Fatal(err)
	}
	against := have.Models[1]["against"].(map[string]any)
	if len(against) != 3 || against["loss_difference"] != 999.0 || have.Models[1]["perplexity"] != nil || have.Models[0]["perplexity"] == nil {
		t.Errorf("%s", js)
	}
	r.print(io.Discard)
}

// TestEvalRefusesOtherTokens: models are compared on the same tokens only.
func TestEvalRefusesOtherTokens(t *testing.T) {
	r := &evalReport{models: make([]evalJSON, 1)}
	if err := r.add("m", &forward.Scores{Nats: [][]float64{{1}}}, &forward.Scores{Nats: [][]float64{{1, 2}}}, 0, 0); err == nil {
		t.Error("losses of other tokens were compared")
	}
}

func TestWider(t *testing.T) {
	part := func(n int) tokens.Set { return tokens.Set{Part: tokens.Part{N: n, T: 256}} }
	within := func(half float64) forward.Comparison { return forward.Comparison{Low: -half, High: half} }
	if s := wider(within(2*fine), part(1000)); s != "an interval of ±0.05 % of perplexity needs about 4 000 sequences like these, 1 100 000 tokens" {
		t.Error(s)
	}
	if s := wider(within(0.9*fine), part(1000)); s != "" {
		t.Errorf("fine enough, and yet: %s", s)
	}
	if s := wider(within(0), part(2)); s != "" {
		t.Errorf("no difference at all, and yet: %s", s)
	}
	if s := wider(within(math.Inf(1)), part(1)); !strings.HasPrefix(s, "a single sequence") {
		t.Error(s)
	}
}

func TestTwoDigits(t *testing.T) {
	for n, want := range map[int]int{1: 1, 99: 99, 100: 100, 101: 110, 990: 990, 991: 1000, 12345: 13000} {
		if have := twoDigits(n); have != want {
			t.Errorf("%d becomes %d, want %d", n, have, want)
		}
	}
}

func TestPerplexity(t *testing.T) {
	large := 1.234e9
	for want, v := range map[string]*float64{"–": finite(math.Inf(1)), "1.500000": finite(1.5), "1.23e+09": &large} {
		if have := perplexity(v); have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}
