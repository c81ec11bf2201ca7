package probe

import (
	"bytes"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
)

// TestWorks: every probe is one that can be made, finite, and unlike the baseline.
func TestWorks(t *testing.T) {
	for _, full := range []bool{false, true} {
		works, err := Jobs(full)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, w := range works {
			if err := w.Validate(); err != nil {
				t.Error(err)
			}
			if seen[w.Setup.String()] {
				t.Errorf("%v is there twice", w.Setup)
			}
			seen[w.Setup.String()] = true
			for _, p := range w.Points {
				if full && w.Setup.M != w.Setup.N {
					continue // the same patterns
				}
				s := pattern.Spec{DType: w.Setup.Type.Operand(), Rows: 128, Cols: 192, Seed: 3}
				data, err := p.W.Generate(t.Context(), s, 2)
				if err != nil {
					t.Errorf("%v: %s: %v", w.Setup, p.Name(), err)
					continue
				}
				base, err := w.Baseline.W.Generate(t.Context(), s, 2)
				if err != nil || bytes.Equal(data, base) {
					t.Errorf("%v: %s: %v is the baseline (%v)", w.Setup, p.Name(), p.W, err)
				}
				f, _ := s.DType.Format()
				for i := range s.Rows * s.Cols {
					if !f.Finite(f.Elem(data, i)) {
						t.Fatalf("%v: %s: element %d is not finite", w.Setup, p.Name(), i)
					}
				}
			}
		}
		t.Logf("full %v: %d series", full, len(works))
	}
}
