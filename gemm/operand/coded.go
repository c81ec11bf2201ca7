package operand

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// coded is a quantised layer as the matrix units read it: one expert of a weight.
type coded struct {
	w          *quant.Quantised
	expert     int
	rows, cols int  // as stored
	transposed bool // stored as inputs × outputs
}

// codedOf lists the layers of a quantised weight with their names: that of the weight, and the expert's number if there
// are several.
func codedOf(w *quant.Quantised) iter.Seq2[string, *coded] {
	return func(yield func(string, *coded) bool) {
		d := len(w.Shape)
		for expert := range w.Experts() {
			name := w.Name
			if w.Experts() > 1 {
				name = fmt.Sprintf("%s[%d]", name, expert)
			}
			if !yield(name, &coded{w: w, expert: expert, rows: w.Shape[d-2], cols: w.Shape[d-1]}) {
				return
			}
		}
	}
}

// coded finds a quantised layer by its name; nil if there is none.
func (m *model) coded(name string) *coded {
	if !m.codes {
		return nil
	}
	for _, w := range m.weights.All {
		if w.Quantised == nil || len(name) < len(w.Name) || name[:len(w.Name)] != w.Name {
			continue
		}
		for other, c := range codedOf(w.Quantised) {
			if other == name {
				return c
			}
		}
	}
	return nil
}

func (m *model) codedLayer(name string, c *coded) Layer {
	w := &Matrix{DType: c.w.Operand(), Rows: c.rows, Cols: c.cols, values: c}
	if c.transposed = m.layout.OutAxis(c.w.Name) == 1; c.transposed {
		w.Rows, w.Cols = c.cols, c.rows
	}
	return Layer{Name: name, Kind: m.layout.Kind(c.w.Name), W: w, Format: &c.w.Format}
}

func (c *coded) block(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
	if c.transposed {
		row, rows, col, cols = col, cols, row, rows
	}
	data, err := c.w.OperandRows(c.expert*c.rows+row, rows)
	if err != nil {
		return nil, err
	}
	m := gemm.Matrix{DType: c.w.Operand(), Rows: rows, Cols: c.cols, Data: data}
	m.Data, err = (&stored{m: m}).cut(ctx, 0, rows, col, cols)
	if m.Cols = cols; c.transposed {
		m = m.Transposed()
	}
	return m.Data, err
}

func (c *coded) whole(ctx context.Context) (gemm.Matrix, error) {
	data, err := c.w.OperandRows(c.expert*c.rows, c.rows)
	m := gemm.Matrix{DType: c.w.Operand(), Rows: c.rows, Cols: c.cols, Data: data}
	if err == nil && c.transposed {
		m = m.Transposed()
	}
	return m, errors.Join(err, ctx.Err())
}
