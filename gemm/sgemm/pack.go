package sgemm

import "sync"

// The kernel keeps a tile of c in registers. All tiles of a sweep use one block of b, of depth by at most
// width. With the rows of a it fits the second-level cache of one core.
const (
	tileRows = 14
	tileCols = 32
	depth    = 256
	width    = 1024

	// The distance of packed rows of a is no power of two, so that they do not compete for the same lines of
	// the first-level cache.
	rowStep = depth + 16
)

type (
	// rowPanel is tileRows rows of a: element (i, k) stands at i*rowStep+k.
	rowPanel [tileRows * rowStep]float32

	// colPanel is tileCols columns of b: element (k, j) stands at [k][j].
	colPanel [depth][tileCols]float32

	// block is neighbouring panels of b.
	block [width / tileCols]colPanel
)

// A block is a megabyte, too much to allocate for every small product.
var (
	blocks    = sync.Pool{New: func() any { return new(block) }}
	rowPanels = sync.Pool{New: func() any { return new(rowPanel) }}
)

// pack takes m's rows, or its columns where trans is set.
func (p *rowPanel) pack(m Matrix, trans bool) {
	if !trans {
		for i := range m.Rows {
			copy(p[i*rowStep:], m.Row(i))
		}
		clear(p[m.Rows*rowStep:])
		return
	}
	k := 0
	for ; k+4 <= m.Rows; k += 4 { // four rows at a time, so that fewer cache lines are visited
		r0, r1, r2, r3 := m.Row(k), m.Row(k + 1)[:m.Cols], m.Row(k + 2)[:m.Cols], m.Row(k + 3)[:m.Cols]
		for i, v := range r0 {
			to := (*[4]float32)(p[i*rowStep+k:])
			to[0], to[1], to[2], to[3] = v, r1[i], r2[i], r3[i]
		}
	}
	for ; k < m.Rows; k++ {
		for i, v := range m.Row(k) {
			p[i*rowStep+k] = v
		}
	}
	clear(p[m.Cols*rowStep:])
}

// pack takes m's columns, or its rows where trans is set.
func (p *colPanel) pack(m Matrix, trans bool) {
	if !trans {
		for k := range m.Rows {
			if row := m.Row(k); len(row) == tileCols {
				p[k] = [tileCols]float32(row)
			} else {
				clear(p[k][copy(p[k][:], row):])
			}
		}
		return
	}
	j := 0
	for ; j+8 <= m.Rows; j += 8 { // eight columns at a time fill half a cache line
		r0, r1, r2, r3 := m.Row(j), m.Row(j + 1)[:m.Cols], m.Row(j + 2)[:m.Cols], m.Row(j + 3)[:m.Cols]
		r4, r5, r6, r7 := m.Row(j + 4)[:m.Cols], m.Row(j + 5)[:m.Cols], m.Row(j + 6)[:m.Cols], m.Row(j + 7)[:m.Cols]
		for k, v := range r0 {
			to := (*[8]float32)(p[k][j:])
			to[0], to[1], to[2], to[3] = v, r1[k], r2[k], r3[k]
			to[4], to[5], to[6], to[7] = r4[k], r5[k], r6[k], r7[k]
		}
	}
	for ; j < m.Rows; j++ {
		for k, v := range m.Row(j) {
			p[k][j] = v
		}
	}
	if m.Rows < tileCols {
		for k := range m.Cols {
			clear(p[k][m.Rows:])
		}
	}
}
