package card

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// TestInvalidTogether: the reason why several cards' totals are invalid is printed once, and not again for each card.
func TestInvalidTogether(t *testing.T) {
	r := measure.ModelReport{Cards: []measure.CardEnergy{
		{Name: "a", ModelEnergy: &measure.ModelEnergy{Invalid: []string{"prefill: heat"}}}, {Name: "b", ModelEnergy: &measure.ModelEnergy{}},
	}, Invalid: []string{"a, prefill: heat"}}
	var out bytes.Buffer
	if PrintModels(&out, &r, ""); strings.Count(out.String(), "INVALID: ") != 1 || !strings.Contains(out.String(), "INVALID: a, prefill: heat") {
		t.Error(out.String())
	}
}
