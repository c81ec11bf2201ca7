package program

import (
	"bytes"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestRowsUnderOneScale: rows that share a scale are computed once for all callers, and have the codes of the whole matrix.
func TestRowsUnderOneScale(t *testing.T) {
	for _, name := range []string{"compressed fp8 tensor", "compressed fp8 block"} {
		for _, q := range testmodel.Quantisations {
			if q.Name != name {
				continue
			}
			model, err := weights.Open(testmodel.Quantised(t, q, testmodel.With{}))
			testmodel.OK(t, err)
			defer model.Close()
			d, err := quant.Describe(model)
			testmodel.OK(t, err)
			w, _ := quant.Group(model, d).Weight(d.Weights[0].Name)
			p := &Program{Source: w, Rows: w.Rows, Cols: w.Cols,
				coded: &coded{weight: w.Quantised, rule: Recoding{Rescale: true, Bits: 2}, operand: w.Quantised.Operand(), books: newBooks()}}
			whole, err := p.Recoded(t.Context(), 0, true, 1)
			testmodel.OK(t, err)
			first, _ := p.matrixOf(0, 0, 1)
			for row := range w.Rows {
				m, from := p.matrixOf(0, row, 1)
				if !bytes.Equal(m.Codes[from*m.K:(from+1)*m.K], whole.Codes[row*m.K:(row+1)*m.K]) {
					t.Fatalf("%s: other codes in row %d", name, row)
				}
				if row < whole.Block[0] && m != first {
					t.Fatalf("%s: row %d was computed anew", name, row)
				}
			}
			p.Release()
			if again, _ := p.matrixOf(0, 0, 1); again == first {
				t.Errorf("%s: Release keeps the rows", name)
			}
		}
	}
}
