package pass_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestPreviewIsWhatPassesLeave: orders are chosen on the values that the lossy passes leave.
func TestPreviewIsWhatPassesLeave(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, weights.BF16)
		for _, passes := range []string{"round", "round=5", "grid=2", "grid=4,round=3", "sparsify=0.3/element,round=4", "sparsify=0.5/4x4", "trellis=0.03"} {
			as := passes
			if passes == "round" { // half of the seven bits that a budget may choose
				as = "round=4"
			}
			want := open(t, testplan.Applied(t, m, nil, makePlan(t, m, as, 0)))
			seen := 0
			ok(t, pass.EachPreview(t.Context(), modelOf(t, m, passes), func(p *program.Program, read func(int) []byte) {
				seen++
				expected := tensorOf(t, want, p.Source.Name)
				same := 0
				for row := range p.Rows {
					got := read(row)
					for k := range p.Cols {
						if p.Format.Elem(got, k) == p.Format.Elem(expected.Data[row*p.RowBytes():], k) {
							same++
						}
					}
				}
				// A preview does not show the choices of a trellis along rows.
				if n := p.Rows * p.Cols; same < n && (passes != "trellis=0.03" || same < n*8/10) {
					t.Fatalf("%s %s: %d of %d values of %s agree with the preview", name, passes, same, n, p.Source.Name)
				}
			}))
			if seen == 0 {
				t.Fatalf("%s: no previews", name)
			}
		}
	}
}

// TestExpectedPasses: without arguments, a preview shows the last pass that a budget chooses for. Without a lossy
// pass, it shows none.
func TestExpectedPasses(t *testing.T) {
	for passes, want := range map[string]string{"reorder": "", "grid,round": "round", "grid,round=3": "round=3",
		"sparsify=0.1,grid=2": "sparsify=0.1 grid=2", "trellis": "trellis", "shift": ""} {
		got := ""
		for i, c := range pass.Expected(options(t, passes, 0).Passes) {
			if i > 0 {
				got += " "
			}
			got += c.String()
		}
		if got != want {
			t.Errorf("%s: %q is expected, want %q", passes, got, want)
		}
	}
}
