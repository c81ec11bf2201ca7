package pattern

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// goldenPatterns cover every operation and every variant of it.
var goldenPatterns = []string{
	"normal(0,20)", "uniform(-30,50)", "const(0.1)", "zeros", "set(5,normal(0,20))", "set(3,uniform(-5,5))",
	"normal(0,20) | shift(0.3)", "normal(0,20) | scale(0.3)", "normal(0,20) | abs", "normal(0,20) | clip(7)",
	"normal(0,20) | quantize(0.3)", "normal(0,20) | round(2)", "normal(0,20) | round(2,truncate)", "normal(0,20) | grid(4)",
	"normal(0,20) | flip(0.1)", "normal(0,20) | flip(1)", "normal(0,20) | random(low=3,high=1)", "normal(0,20) | zero(low=2,high=1)",
	"normal(0,20) | signs(random)", "normal(0,20) | signs(rows)", "normal(0,20) | signs(columns)",
	"normal(0,20) | sort(0.4)", "normal(0,20) | sort(0.4,by=columns)", "normal(0,20) | sort(0.4,by=within)",
	"normal(0,20) | transpose", "normal(0,20) | sparse(0.3)", "normal(0,20) | sparse(0.3,block=3x5)",
	"set(4,normal(0,20)) | reorder(rows)", "set(4,normal(0,20)) | reorder(columns)",
	"normal(0,20) | repeat(rows=3,columns=2)", "normal(0,20) | cycle(rows=3,columns=2)",
	"normal(0,20) | round(1) | sparse(0.2) | flip(0.01) | transpose | sort(0.5)",
}

// TestGolden: the same seed gives the same bytes, on every machine and in every version. Rewrite the file only if a
// pattern should give another matrix in future: recorded results name their matrix by text and seed.
func TestGolden(t *testing.T) {
	var b bytes.Buffer
	for _, text := range goldenPatterns {
		for _, d := range types {
			data, _ := generate(t, text, Spec{d, 67, 300, 12345})
			fmt.Fprintf(&b, "%x  %s  %s\n", sha256.Sum256(data), d, text)
		}
	}
	goldenfile.Same(t, "testdata/golden.txt", b.Bytes())
}

// TestGoldenIsComplete: the golden patterns cover all operations.
func TestGoldenIsComplete(t *testing.T) {
	seen := map[string]bool{"tensor": true} // it generates no bytes
	for _, text := range goldenPatterns {
		for _, c := range MustParse(text).calls() {
			seen[c.op.Name] = true
		}
	}
	for _, o := range operations {
		if !seen[o.Name] {
			t.Errorf("%s is in no golden pattern", o.Name)
		}
	}
}
