package quant

import (
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Matrix holds a quantised weight, or one of its experts: codes, scales, zero points and groups.
//
//	w[n,k] = (Book.Values[code] − zero point) · scale
//
// in float32, where the scale includes the global scale (see [Matrix.Scale]).
type Matrix struct {
	Book Book
	// N and K are the numbers of outputs and inputs, as in the weight's Shape.
	N, K int
	// Codes are [N,K], one in a byte. Floating-point codes are the bits as stored. Integers are unsigned: a signed
	// integer is stored here with half the range added.
	Codes []byte
	// Scales are [⌈N/Block[0]⌉, ⌈K/Block[1]⌉]; with Group, [N, groups].
	Scales []float32
	// Zeros are the codes that represent 0, one for each entry of Scales; nil if Book.Zero is the zero point of all.
	Zeros []uint8
	// Block is the size, rows × columns, of the block that shares a scale.
	Block [2]int
	// Group is the group of each of K inputs (GPTQ's g_idx); nil: input k belongs to group k / Block[1].
	Group []int32
	// Global is the stored global scale of NVFP4; 1 if there is none. It divides the scales if Divide is set, and
	// multiplies them otherwise.
	Global float32
	Divide bool

	skip int // number of rows of the first block of scales that lie before row 0
}

// Book maps the codes of a matrix to values.
type Book struct {
	// Codes is the type of the codes, as in [Format.Codes].
	Codes string
	// Values has the value of each code without scale and zero point. It is shared and read-only.
	Values []float32
	// Zero is the integer code that represents 0 in a matrix without zero points. It is 0 for other codes.
	Zero uint8
	// ScaleType is the type in which scales are stored. U8 is given as F8_E8M0.
	ScaleType weights.DType
}

// RoundScale returns the positive value nearest to s that the type of the scales can hold, ties to even. s must be positive. It
// panics if ScaleType has no format; the types of stored scales all have one.
func (b *Book) RoundScale(s float32) float32 {
	if b.ScaleType == weights.F8E8M0 {
		_, e := math.Frexp(float64(s) * (4. / 3)) // a power of two is the nearest one up to 1.5 times its value
		return float32(math.Ldexp(1, min(max(e-1, -127), 127)))
	}
	f, ok := b.ScaleType.Format()
	if !ok {
		panic(fmt.Sprintf("quant.Book.RoundScale: scales of type %q have no format", b.ScaleType))
	}
	v := f.FromValue(s)
	return f.Value(max(v, 1))
}

// Columns returns the number of scales in a row of Scales.
func (m *Matrix) Columns() int { return len(m.Scales) / ceil(m.N+m.skip, m.Block[0]) }

// Place returns the index in Scales and Zeros for row n and column k.
func (m *Matrix) Place(n, k int) int {
	g := k / m.Block[1]
	if m.Group != nil {
		g = int(m.Group[k])
	}
	return (n+m.skip)/m.Block[0]*m.Columns() + g
}

// RowScales returns the index in Scales and Zeros of the first scale of row n.
func (m *Matrix) RowScales(n int) int { return (n + m.skip) / m.Block[0] * m.Columns() }

// Whole returns the matrix m, whose row 0 is the first row of its first block of scales.
func Whole(m Matrix) *Matrix {
	m.skip = 0
	return &m
}

// Scale returns the scale of row n and column k: the stored scale times the global scale, or divided by it.
func (m *Matrix) Scale(n, k int) float32 { return m.effective(m.Scales[m.Place(n, k)]) }

func (m *Matrix) effective(s float32) float32 {
	if m.Divide {
		return s / m.Global
	}
	return s * m.Global
}

// ZeroPoint returns the code that represents 0 in row n and column k. It is 0 for codes that are not integers.
func (m *Matrix) ZeroPoint(n, k int) uint8 {
	if m.Zeros == nil {
		return m.Book.Zero
	}
	return m.Zeros[m.Place(n, k)]
}

// Value returns the number in row n and column k.
func (m *Matrix) Value(n, k int) float32 {
	v := m.Book.Values[m.Codes[n*m.K+k]]
	return float32(v-float32(m.ZeroPoint(n, k))) * m.Scale(n, k)
}

// Row writes the K numbers of row n to dst.
func (m *Matrix) Row(dst []float32, n int) {
	columns := m.Columns()
	at := (n + m.skip) / m.Block[0] * columns
	scales, codes, dst := m.Scales[at:at+columns], m.Codes[n*m.K:(n+1)*m.K], dst[:m.K]
	zeros := m.Zeros
	if zeros != nil {
		zeros = zeros[at : at+columns]
	}
	if m.Group != nil {
		m.groupedRow(dst, codes, scales, zeros)
		return
	}
	for g, s := range scales {
		zero := m.Book.Zero
		if zeros != nil {
			zero = zeros[g]
		}
		from, to := g*m.Block[1], min((g+1)*m.Block[1], m.K)
		dequantise(dst[from:to], codes[from:to], m.Book.Values, float32(zero), m.effective(s))
	}
}

// dequantise writes (value − zero) · scale for each code. For long runs of codes it uses a table of products.
func dequantise(dst []float32, codes []byte, values []float32, zero, scale float32) {
	dst = dst[:len(codes)]
	switch {
	case len(values) == 16 && len(codes) >= 32:
		var product [16]float32
		for c, v := range values {
			product[c] = (v - zero) * scale
		}
		for i, c := range codes {
			dst[i] = product[c&15]
		}
	case len(values) == 256 && len(codes) >= 1024:
		var product [256]float32
		for c, v := range values {
			product[c] = (v - zero) * scale
		}
		for i, c := range codes {
			dst[i] = product[c]
		}
	default:
		for i, c := range codes {
			dst[i] = (values[c] - zero) * scale
		}
	}
}

// groupedRow writes a row of a matrix with a group index.
func (m *Matrix) groupedRow(dst []float32, codes []byte, scales []float32, zeros []uint8) {
	effective, offsets := make([]float32, len(scales)), make([]float32, len(scales))
	for g, s := range scales {
		effective[g], offsets[g] = m.effective(s), float32(m.Book.Zero)
		if zeros != nil {
			offsets[g] = float32(zeros[g])
		}
	}
	for k, c := range codes {
		g := m.Group[k]
		dst[k] = (m.Book.Values[c] - offsets[g]) * effective[g]
	}
}

// Clone returns a copy that shares nothing with m but the read-only Book.
func (m *Matrix) Clone() *Matrix {
	c := *m
	c.Codes, c.Scales, c.Zeros, c.Group = slices.Clone(m.Codes), slices.Clone(m.Scales), slices.Clone(m.Zeros), slices.Clone(m.Group)
	return &c
}
