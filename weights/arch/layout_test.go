package arch

import (
	"fmt"
	"strings"
	"testing"
)

func TestNormKind(t *testing.T) {
	_, l := synthetic(t, find(t, Families(), "gpt2"), gpt2Config)
	kinds := map[NormKind]int{}
	for _, c := range l.Claims {
		kinds[c.NormKind]++
		if (c.NormKind != "") != (c.Role == Norm && strings.HasSuffix(c.Name, ".weight")) {
			t.Errorf("%s: %q", c.Name, c.NormKind)
		}
	}
	if fmt.Sprint(kinds) != fmt.Sprint(map[NormKind]int{"": len(l.Claims) - 5, LayerNorm: 5}) {
		t.Errorf("%v", kinds)
	}
}

// A linear layer whose norm has no weight in this model has none.
func TestNormWithoutWeight(t *testing.T) {
	f := mustParse(t, strings.NewReplacer(
		`"axes": ["residual & +final_norm"]}`, `"axes": ["residual & +final_norm"], "when": "attention_bias"}`,
		`"scale": "!tied !headless"`, `"scale": "!tied !headless attention_bias"`).Replace(source(t, "llama")))
	for _, affine := range []bool{true, false} {
		_, l := synthetic(t, f, strings.Replace(llamaConfig, `"attention_bias": true`, fmt.Sprintf(`"attention_bias": %t`, affine), 1))
		if c := l.Claims["lm_head.weight"]; (c.Norm != nil) != affine {
			t.Errorf("%t: %+v", affine, c.Norm)
		}
	}
}
