package transform

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Orders are chosen on what the lossy passes will leave.
func TestPreviewIsWhatPassesLeave(t *testing.T) {
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, weights.BF16)
		for _, passes := range []string{"round=5", "grid=2", "grid=4,round=3", "sparsify=0.3/element,round=4", "sparsify=0.5/4x4", "trellis=0.03"} {
			want := open(t, applied(t, m, makePlan(t, m, passes, 0)))
			p := plannerOf(t, m, passes)
			views := newPreviews(p)
			for _, ix := range p.layout.Indices {
				for _, u := range p.uses(ix) {
					v, err := views.of(u)
					ok(t, err)
					size, rows := v.rowBytes(), v.reader()
					expected := tensorOf(t, want, u.tensor.Name)
					same := 0
					for row := range v.rows {
						got := rows.read(row)
						for k := range v.cols {
							if v.format.Elem(got, k) == v.format.Elem(expected.Data[row*size:], k) {
								same++
							}
						}
					}
					// What a trellis does along rows is not foreseen.
					if n := v.rows * v.cols; same < n && (passes != "trellis=0.03" || same < n*8/10) {
						t.Fatalf("%s %s: %d of %d values of %s are seen as they come out", name, passes, same, n, u.tensor.Name)
					}
				}
			}
		}
	}
}

// plannerOf is a planner at the beginning of a plan.
func plannerOf(t *testing.T, m *weights.Model, passes string) *planner {
	t.Helper()
	p := newPlanner(t.Context(), m, options(t, passes, 0))
	p.plan = &Plan{}
	ok(t, p.resolve())
	ok(t, p.compile())
	return p
}

// Without arguments a preview is of the last pass that a budget chooses for, and of none where there is no
// lossy pass.
func TestForeseen(t *testing.T) {
	for passes, want := range map[string]string{"reorder": "", "grid,round": "round", "grid,round=3": "round=3",
		"sparsify=0.1,grid=2": "sparsify=0.1 grid=2", "trellis": "trellis", "shift": ""} {
		got := ""
		for i, c := range (&planner{opt: options(t, passes, 0)}).foreseen() {
			if i > 0 {
				got += " "
			}
			got += c.String()
		}
		if got != want {
			t.Errorf("%s: %q is foreseen, want %q", passes, got, want)
		}
	}
}
