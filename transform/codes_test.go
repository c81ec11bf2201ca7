package transform_test

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// recoded converts a quantised checkpoint with passes for codes, and verifies the result. It returns the plan, the result and
// the names of the tensors that changed.
func recoded(t *testing.T, m *weights.Model, o transform.Options) (*plan.Plan, *weights.Model, []string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	c, err := transform.Convert(t.Context(), m, out, transform.ConvertOptions{Options: o})
	if err != nil {
		t.Fatal(err)
	}
	result := open(t, out)
	var changed []string
	for _, info := range m.Infos() {
		if !bytes.Equal(tensorOf(t, m, info.Name).Data, tensorOf(t, result, info.Name).Data) {
			changed = append(changed, info.Name)
		}
	}
	r, err := transform.Verify(t.Context(), m, result, transform.VerifyOptions{})
	ok(t, err)
	for _, p := range r.Problems {
		t.Error(p)
	}
	for _, x := range r.Tensors {
		if x.Problem != "" {
			t.Errorf("%s: %s", x.Name, x.Problem)
		}
	}
	return c.Plan, result, changed
}

// TestPassesForCodes: in every layout that can be read, each pass for codes either changes codes and verify finds what it
// claims, or a note says why not.
func TestPassesForCodes(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := open(t, testmodel.Quantised(t, q, testmodel.With{}))
		d, err := quant.Describe(m)
		ok(t, err)
		w := d.Weights[0]
		if w.CanRead() != nil {
			continue
		}
		for _, passes := range []string{"zeros", "scales=2", "scales=0", "round=1", "grid=2", "trellis=10", "scales,round=1", "scales=1,trellis=0.1"} {
			t.Run(q.Name+" "+passes, func(t *testing.T) {
				p, _, changed := recoded(t, m, options(t, passes, 0))
				codes := 0
				for _, name := range changed {
					if _, role, ok := d.Tensor(name); ok {
						codes++
						if role != quant.Codes && role != quant.Scales {
							t.Errorf("%s changed, which holds %s", name, role)
						}
					}
				}
				noted := false
				for _, n := range p.Notes {
					noted = noted || strings.Contains(n, w.Format.String())
				}
				if codes == 0 && !noted {
					t.Errorf("nothing changed; steps %v, notes %q", len(p.Steps), p.Notes)
				}
			})
		}
	}
}

// TestScalesOfFewBits: INT4 with scales of two mantissa bits. Error against the checkpoint's values stays small.
func TestScalesOfFewBits(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		if q.Name != "pack-quantized" {
			continue
		}
		m := open(t, testmodel.Quantised(t, q, testmodel.With{}))
		_, result, _ := recoded(t, m, options(t, "scales=2", 0))
		d, err := quant.Describe(result)
		ok(t, err)
		for _, w := range d.Weights {
			x, err := w.Read(0)
			ok(t, err)
			for _, s := range x.Scales {
				if f, _ := math.Frexp(float64(s)); f*8 != math.Trunc(f*8) {
					t.Fatalf("%s: a scale of %g", w.Name, s)
				}
			}
		}
	}
}
