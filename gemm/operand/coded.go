package operand

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// coded is a quantised layer in the form that the tensor cores read: one expert of a weight.
type coded struct {
	w          *quant.Quantised
	expert     int
	rows, cols int  // as stored
	transposed bool // stored as inputs × outputs
	check      func() error
}

// codedOf yields the layers of a quantised weight with their names. A layer's name is the weight's name, followed by
// the expert's number if there are several experts.
func codedOf(w *quant.Quantised) iter.Seq2[string, *coded] {
	return func(yield func(string, *coded) bool) {
		d, check := len(w.Shape), sync.OnceValue(func() error { return weights.Guard(strings.Join(w.Files(), " or "), w.Check) })
		for expert := range w.Experts() {
			name := w.Name
			if w.Experts() > 1 {
				name = fmt.Sprintf("%s[%d]", name, expert)
			}
			if !yield(name, &coded{w: w, expert: expert, rows: w.Shape[d-2], cols: w.Shape[d-1], check: check}) {
				return
			}
		}
	}
}

// coded returns the quantised layer with a name; nil if there is none.
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
	if err := c.check(); err != nil {
		return nil, err
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

// whole returns all elements. If kernels multiply the codes unchanged, the matrix has the scales. If a kernel
// dequantises the codes, the matrix has the codes.
func (c *coded) whole(ctx context.Context) (gemm.Matrix, error) {
	values, err := c.w.Load(c.expert)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return gemm.Matrix{}, err
	}
	d := c.w.Operand()
	if codes := codesOf(values); codes != nil && d == weights.BF16 && !c.transposed {
		return codes.Matrix()
	}
	m := gemm.Matrix{DType: d, Rows: c.rows, Cols: c.cols, Data: values.Operand(d, 0, c.rows)}
	if d != weights.BF16 {
		m.Scales = scalesOf(values)
	}
	if c.transposed {
		s := m.Scales
		if m = m.Transposed(); s != nil {
			m.Scales = transposed(s, c.rows, c.cols)
		}
	}
	return m, nil
}

// scalesOf returns the scales for the codes of a matrix.
func scalesOf(m *quant.Matrix) *gemm.Scales {
	s := &gemm.Scales{Rows: m.Block[0], Cols: m.Block[1]}
	for n := 0; n < m.N; n += m.Block[0] {
		for k := 0; k < m.K; k += m.Block[1] {
			s.Values = append(s.Values, m.Scale(n, k))
		}
	}
	return s
}

// transposed returns the scales for the transpose of a rows × cols matrix.
func transposed(s *gemm.Scales, rows, cols int) *gemm.Scales {
	t := &gemm.Scales{Rows: s.Cols, Cols: s.Rows}
	across, down := (cols-1)/s.Cols+1, (rows-1)/s.Rows+1
	for c := range across {
		for r := range down {
			t.Values = append(t.Values, s.Values[r*across+c])
		}
	}
	return t
}

// codesOf returns the four-bit codes of a matrix in the form that a dequantising kernel reads; nil if no such kernel
// supports them.
func codesOf(m *quant.Matrix) *gemm.Codes {
	c := &gemm.Codes{Rows: m.N, Cols: m.K, FP4: m.Book.Codes == "mxfp4" || m.Book.Codes == "nvfp4", Group: m.Block[1], ScaleType: m.Book.ScaleType}
	if len(m.Book.Values) != 16 || m.Block[0] != 1 || m.K%m.Block[1] != 0 {
		return nil
	}
	order := m.InputsByGroup()
	for at, k := range order {
		if int(m.Group[k]) != at/c.Group {
			return nil // groups have different sizes
		}
	}
	if c.ScaleType != weights.F8E4M3 && c.ScaleType != weights.F8E8M0 {
		c.ScaleType = weights.BF16
	}
	c.Codes = m.Codes
	if order != nil {
		c.Codes = make([]byte, len(m.Codes))
		for n := range m.N {
			for at, k := range order {
				c.Codes[n*m.K+at] = m.Codes[n*m.K+k]
			}
		}
	}
	for _, s := range m.Scales {
		switch c.ScaleType {
		case weights.F8E8M0:
			_, e := math.Frexp(float64(s))
			c.Scales = append(c.Scales, byte(e-1+127))
		default:
			f, _ := c.ScaleType.Format()
			var b [2]byte
			f.SetElem(b[:], 0, f.FromValue(s))
			c.Scales = append(c.Scales, b[:f.Bits/8]...)
		}
	}
	c.Zeros = m.Zeros
	if c.Validate() != nil {
		return nil
	}
	return c
}

// packedCodes are the four-bit codes of a layer, packed as in memory: two codes per byte.
type packedCodes struct{ *coded }

// packed returns a layer's packed codes; nil if no kernel dequantises four-bit codes of this layer.
func (l Layer) packed() *Matrix {
	c, ok := l.W.values.(*coded)
	if !ok || c.transposed || c.w.Operand() != weights.BF16 {
		return nil
	}
	row, err := c.w.PackedRows(c.expert*c.rows, 1)
	if err != nil || len(row) != c.cols/2 {
		return nil
	}
	return &Matrix{DType: weights.F8E4M3, Rows: c.rows, Cols: c.cols / 2, values: packedCodes{c}}
}

func (c packedCodes) block(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
	data, err := c.w.PackedRows(c.expert*c.rows+row, rows)
	if err != nil {
		return nil, err
	}
	return (&stored{m: gemm.Matrix{DType: weights.F8E4M3, Rows: rows, Cols: c.cols / 2, Data: data}}).cut(ctx, 0, rows, col, cols)
}

func (c packedCodes) whole(ctx context.Context) (gemm.Matrix, error) {
	data, err := c.block(ctx, 0, c.rows, 0, c.cols/2)
	return gemm.Matrix{DType: weights.F8E4M3, Rows: c.rows, Cols: c.cols / 2, Data: data}, err
}
