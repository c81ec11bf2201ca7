package sgemm

import "fmt"

// Matrix is a row-major view: element (i, j) is Data[i*Stride+j].
type Matrix struct {
	Rows, Cols, Stride int
	Data               []float32
}

// Dense returns a matrix without gaps between its rows. A nil data is allocated. Dense panics if data has another
// length than rows*cols.
func Dense(rows, cols int, data []float32) Matrix {
	if data == nil {
		data = make([]float32, rows*cols)
	}
	if len(data) != rows*cols {
		panic(fmt.Sprintf("sgemm: data has %d elements, but the matrix has the shape %dx%d", len(data), rows, cols))
	}
	return Matrix{rows, cols, cols, data}
}

// Slice returns the view of rows r0 to r1 and columns c0 to c1, ends excluded.
func (m Matrix) Slice(r0, r1, c0, c1 int) Matrix {
	if r0 < 0 || r1 < r0 || m.Rows < r1 || c0 < 0 || c1 < c0 || m.Cols < c1 {
		panic(fmt.Sprintf("sgemm: slice [%d:%d, %d:%d] is out of range for a matrix of %dx%d", r0, r1, c0, c1, m.Rows, m.Cols))
	}
	var data []float32
	if r0 < r1 && c0 < c1 {
		data = m.Data[r0*m.Stride+c0 : (r1-1)*m.Stride+c1]
	}
	return Matrix{r1 - r0, c1 - c0, m.Stride, data}
}

// Row returns row i, which shares the matrix's memory.
func (m Matrix) Row(i int) []float32 {
	if m.Cols == 0 {
		return nil
	}
	return m.Data[i*m.Stride:][:m.Cols:m.Cols]
}

// check panics if the data is too short for the shape.
func (m Matrix) check(name string) {
	if m.Rows < 0 || m.Cols < 0 || m.Stride < m.Cols {
		panic(fmt.Sprintf("sgemm: %s has shape %dx%d and stride %d: none may be negative, and a row must fit into the stride", name, m.Rows, m.Cols, m.Stride))
	}
	if m.Rows == 0 || m.Cols == 0 {
		return
	}
	if need := (m.Rows-1)*m.Stride + m.Cols; len(m.Data) < need {
		panic(fmt.Sprintf("sgemm: %s has %d elements, but its shape %dx%d with stride %d needs %d",
			name, len(m.Data), m.Rows, m.Cols, m.Stride, need))
	}
}
