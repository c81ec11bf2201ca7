package quantise

import (
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Nearest fills a matrix of the format with the codes nearest to given values. Every scale is computed from the values that
// share it: from their largest magnitude, or with zero points from their range. row writes the values of output n to dst.
// Nearest calls row for all outputs in order, and twice if the whole tensor shares one scale. A group index is not changed.
func (f Format) Nearest(m *quant.Matrix, row func(dst []float32, n int)) {
	if f.whole() {
		f.setWhole(m, largestOf(m.N, m.K, row))
	}
	f.nearest(m, row)
}

// whole reports whether a whole tensor shares one scale.
func (f Format) whole() bool { return f.Per == "tensor" || f.Codes == "nvfp4" }

// largestOf returns the largest magnitude of n rows of k values.
func largestOf(n, k int, row func(dst []float32, n int)) float32 {
	values, bits := make([]float32, k), uint32(0) // the bits of magnitudes have the same order as the magnitudes
	for i := range n {
		row(values, i)
		for _, v := range values {
			bits = max(bits, math.Float32bits(v)&math.MaxInt32)
		}
	}
	return math.Float32frombits(bits)
}

// setWhole sets the scale of a whole tensor from the largest magnitude of its values.
func (f Format) setWhole(m *quant.Matrix, largest float32) {
	if f.Codes == "nvfp4" {
		m.Global = globalScale(largest, m.Divide)
	} else {
		m.Scales[0] = m.Book.RoundScale(scaleFor(largest, floatMost))
	}
}

// nearest is Nearest for a matrix whose scale of the whole tensor, if any, is already set.
func (f Format) nearest(m *quant.Matrix, row func(dst []float32, n int)) {
	rows := min(m.N, m.Block[0])
	if f.Per == "tensor" {
		rows = 1
	}
	values := make([]float32, rows*m.K)
	ranges, inverses := make([]valueRange, m.Columns()), make([]float32, m.Columns())
	for n := 0; n < m.N; n += rows {
		count := min(rows, m.N-n)
		for i := range count {
			row(values[i*m.K:(i+1)*m.K], n+i)
		}
		if f.Per != "tensor" {
			clear(ranges)
			for i := range count {
				widen(m, ranges, values[i*m.K:(i+1)*m.K])
			}
			f.setScales(m, n/m.Block[0]*len(ranges), ranges)
		}
		for i := range count {
			f.setCodes(m, n+i, values[i*m.K:(i+1)*m.K], inverses)
		}
	}
}

// Largest magnitudes of codes without scale.
const (
	floatMost = 448 // FP8 E4M3
	fourMost  = 6   // FP4 E2M1
	byteMost  = 127
	// halfMost is between 7 and −8, the ends of symmetric INT4.
	halfMost = 7.5
	// levels is the range of INT4 with zero points.
	levels = 15
)

// scaleFor returns the scale with which the code value most stands for the magnitude largest; 1 if largest is 0.
func scaleFor(largest, most float32) float32 {
	if largest == 0 {
		return 1
	}
	return max(largest/most, math.SmallestNonzeroFloat32)
}

// globalScale returns the global scale at which the largest group scale is the largest E4M3 value.
func globalScale(largest float32, divide bool) float32 {
	s := scaleFor(largest, floatMost*fourMost)
	if divide {
		return 1 / s
	}
	return s
}

// valueRange is the range of the values that share a scale; it contains 0.
type valueRange struct{ lowest, highest float32 }

func (r valueRange) largest() float32 { return max(-r.lowest, r.highest) }

// widen extends the ranges of groups by a row's values.
func widen(m *quant.Matrix, ranges []valueRange, values []float32) {
	if m.Group != nil {
		for k, v := range values {
			r := &ranges[m.Group[k]]
			r.lowest, r.highest = min(r.lowest, v), max(r.highest, v)
		}
		return
	}
	for g := range ranges {
		lowest, highest := ranges[g].lowest, ranges[g].highest
		for _, v := range values[g*m.Block[1] : min((g+1)*m.Block[1], len(values))] {
			if v < lowest {
				lowest = v
			}
			if v > highest {
				highest = v
			}
		}
		ranges[g] = valueRange{lowest, highest}
	}
}

// setScales sets the scales from index at on, and their zero points if the format has any.
func (f Format) setScales(m *quant.Matrix, at int, ranges []valueRange) {
	most, global := f.most(), float32(1)
	switch {
	case f.Codes == "nvfp4" && m.Divide:
		global = m.Global
	case f.Codes == "nvfp4":
		global = 1 / m.Global
	}
	scales := m.Scales[at : at+len(ranges)]
	for g, r := range ranges {
		largest := r.largest()
		if f.Zeros {
			largest = r.highest - r.lowest
		}
		switch s := scaleFor(largest, most) * global; {
		case f.Codes == "mxfp4":
			scales[g] = powerFor(largest)
		case f.Codes == "nvfp4":
			scales[g] = byteScales[max(floatCode(s), 1)]
		default:
			scales[g] = m.Book.RoundScale(s)
		}
	}
	if m.Zeros == nil {
		return
	}
	for g, r := range ranges {
		m.Zeros[at+g] = m.Book.Zero
		if f.Zeros { // GPTQ version 1 cannot store the zero point 0
			m.Zeros[at+g] = byte(min(max(round(-r.lowest/scales[g]), 1), levels))
		}
	}
}

// most returns the code value that stands for the largest magnitude. With zero points, it returns the range of code values.
func (f Format) most() float32 {
	switch {
	case f.Codes == "mxfp4" || f.Codes == "nvfp4":
		return fourMost
	case f.Codes == "int8":
		return byteMost
	case f.Codes == "int4" && f.Zeros:
		return levels
	case f.Codes == "int4":
		return halfMost
	}
	return floatMost
}

// byteScales are the values of E4M3 scales.
var byteScales = func() (values [256]float32) {
	f, _ := weights.F8E4M3.Format()
	for c := range values {
		values[c] = f.Value(uint32(c))
	}
	return values
}()

// powerFor returns the power-of-two scale that brings FP4's largest exponent to the exponent of largest.
func powerFor(largest float32) float32 {
	if largest == 0 {
		return 1
	}
	_, e := math.Frexp(float64(largest))
	return float32(math.Ldexp(1, e-1-2))
}

// setCodes sets the codes of a row. inverses is memory for one value a group.
func (f Format) setCodes(m *quant.Matrix, n int, values, inverses []float32) {
	at := n / m.Block[0] * len(inverses)
	for g, s := range m.Scales[at : at+len(inverses)] {
		if m.Divide {
			inverses[g] = m.Global / s
		} else {
			inverses[g] = 1 / (s * m.Global)
		}
	}
	codes := m.Codes[n*m.K : (n+1)*m.K]
	switch f.Codes {
	case "fp8":
		for g, inverse := range inverses {
			from, to := g*m.Block[1], min((g+1)*m.Block[1], m.K)
			codes := codes[from:to]
			for i, v := range values[from:to] {
				codes[i] = floatCode(v * inverse)
			}
		}
	case "mxfp4", "nvfp4":
		for g, inverse := range inverses {
			from, to := g*m.Block[1], min((g+1)*m.Block[1], m.K)
			codes := codes[from:to]
			for i, v := range values[from:to] {
				codes[i] = fourCode(v * inverse)
			}
		}
	default:
		f.setIntegers(m, at, codes, values, inverses)
	}
}

// setIntegers sets the integer codes of a row. The row's scales and zero points begin at index at.
func (f Format) setIntegers(m *quant.Matrix, at int, codes []byte, values, inverses []float32) {
	most, zeros := int32(levels), make([]int32, len(inverses))
	if f.Codes == "int8" {
		most = math.MaxUint8
	}
	for g := range zeros {
		zeros[g] = int32(m.Book.Zero)
		if m.Zeros != nil {
			zeros[g] = int32(m.Zeros[at+g])
		}
	}
	if m.Group != nil {
		for k, v := range values {
			g := m.Group[k]
			codes[k] = intCode(v, inverses[g], zeros[g], most)
		}
		return
	}
	for g, inverse := range inverses {
		from, to := g*m.Block[1], min((g+1)*m.Block[1], m.K)
		codes := codes[from:to]
		for i, v := range values[from:to] {
			codes[i] = intCode(v, inverse, zeros[g], most)
		}
	}
}

// round returns v rounded to a whole number, ties to even. |v| must be below 2^22.
func round(v float32) int32 {
	const middle = 3 << 22
	return int32(math.Float32bits(v+middle)) - int32(math.Float32bits(middle))
}

// intCode returns the integer code nearest to v.
func intCode(v, inverse float32, zero, most int32) byte {
	q := float32(v * inverse)
	return byte(min(max(round(min(max(q, -512), 512))+zero, 0), most))
}

// floatCode returns the E4M3 code nearest to v, ties to even. Magnitudes above the largest code's become the largest.
func floatCode(v float32) byte {
	b := math.Float32bits(v)
	sign, magnitude := byte(b>>24&0x80), b&math.MaxInt32
	if magnitude >= 0x43E00000 { // 448
		return sign | 0x7E
	}
	if magnitude < 0x3C800000 { // 2^-6: multiples of 2^-9
		return sign | byte(round(float32(math.Float32frombits(magnitude)*(1<<9))))
	}
	magnitude += 0x7FFFF + magnitude>>20&1
	return sign | byte(magnitude>>20-(127-7)<<3)
}

// fourCode returns the E2M1 code nearest to v, ties to even. Magnitudes above the largest code's become the largest.
func fourCode(v float32) byte {
	b := math.Float32bits(v)
	magnitude := min(b&math.MaxInt32, 0x40C00000) // 6
	code := (magnitude+0x1FFFFF+magnitude>>22&1)>>22 - (127-1)<<1
	if half := uint32(round(2 * math.Float32frombits(magnitude))); magnitude < 0x3F800000 { // below 1: multiples of 0.5
		code = half
	}
	return byte(b>>28&8 | code)
}
