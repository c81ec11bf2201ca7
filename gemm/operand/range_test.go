package operand

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestRange: the values of a pattern's source must fit the type, whatever its later steps do.
func TestRange(t *testing.T) {
	for text, want := range map[string]string{
		"normal(0,32)": "", "normal(0,64)": "normal(0,64) exceeds the range of I8 (±127): choose smaller values", "const(128) | scale(0.5)": "const(128) exceeds",
		"const(127)": "", "uniform(-127,127)": "", "normal(0,0.01)": "normal(0,0.01) becomes zero everywhere in I8: choose larger values",
		"zeros": "", "const(1) | scale(1000)": "", "normal(0,32) | sparse(1)": "", "tensor(nowhere:w)": "",
	} {
		if err := MustParse(text).checkRange(t.Context(), weights.I8, 0); err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"normal(0,1e30)", "const(3e38)", "normal(0,1e-44)"} {
		if err := MustParse(text).checkRange(t.Context(), weights.F32, 0); err != nil {
			t.Error(err)
		}
	}
}
