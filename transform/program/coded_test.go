package program

import (
	"bytes"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestRowsUnderOneScale: rows that share a scale are computed once for all callers, with the codes of the whole
// matrix.
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

// TestCodedRowsKeepNoCodes: after the scales are stored, rows keep no codes of the source while their own codes wait
// to be stored. Both tensors have the bytes of the whole matrix, in either order.
func TestCodedRowsKeepNoCodes(t *testing.T) {
	for _, name := range []string{"pack-quantized", "compressed int8", "compressed fp8 channel", "modelopt nvfp4"} {
		i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == name })
		if i < 0 {
			t.Fatalf("there is no %q", name)
		}
		model, err := weights.Open(testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{}))
		testmodel.OK(t, err)
		defer model.Close()
		d, err := quant.Describe(model)
		testmodel.OK(t, err)
		w, _ := quant.Group(model, d).Weight(d.Weights[0].Name)
		p := &Program{Source: w, Rows: w.Rows, Cols: w.Cols,
			coded: &coded{weight: w.Quantised, rule: Recoding{Rescale: true, Bits: 1}, operand: w.Quantised.Operand(), books: newBooks()}}
		unit := p.RowUnit()
		if unit == 0 {
			t.Fatalf("%s: rows cannot be stored alone", name)
		}
		codeSize, scaleSize := w.Quantised.RowSizes()
		stored := func(scalesFirst bool) (codes, scales []byte) {
			r := p.CodedRows(0, 0, 2*unit)
			codes, scales = make([]byte, 2*unit*codeSize), make([]byte, 2*scaleSize)
			if scalesFirst {
				testmodel.OK(t, r.StoreScales(scales))
			}
			testmodel.OK(t, r.StoreCodes(codes))
			if r.recoder.src.Codes != nil || r.recoder.out.Codes != nil {
				t.Errorf("%s: codes are kept", name)
			}
			testmodel.OK(t, r.StoreScales(scales))
			return codes, scales
		}
		whole, err := p.Recoded(t.Context(), 0, true, 1)
		testmodel.OK(t, err)
		want := map[quant.Role][]byte{}
		testmodel.OK(t, w.Quantised.Encode(whole, 0, func(part int, _ int64, b []byte) error {
			role := w.Quantised.Tensors[part].Role
			want[role] = append(want[role], b...)
			return nil
		}))
		for _, scalesFirst := range []bool{false, true} {
			codes, scales := stored(scalesFirst)
			if !bytes.HasPrefix(want[quant.Codes], codes) || !bytes.HasPrefix(want[quant.Scales], scales) {
				t.Errorf("%s, scales first %v: other bytes than the whole matrix", name, scalesFirst)
			}
		}
	}
}
