package sgemm

import (
	"fmt"
	"sync"
)

// Packed is an operand b[K,N] that was packed once for several products.
type Packed struct {
	k, n, panels int
	rows         *[][tileCols]float32 // the panels of the first depth rows of b, then of the next ones, and depth spare rows
}

var packedRows = sync.Pool{New: func() any { return new([][tileCols]float32) }}

// Pack packs b[K,N], which is given as [N,K] if trans is set. Call Release when it is no longer needed.
func Pack(b Matrix, trans bool) *Packed {
	b.check("b")
	p := &Packed{k: b.Rows, n: b.Cols, rows: packedRows.Get().(*[][tileCols]float32)}
	if trans {
		p.k, p.n = p.n, p.k
	}
	p.panels = ceilDiv(p.n, tileCols)
	if need := p.k*p.panels + depth; len(*p.rows) < need {
		*p.rows = make([][tileCols]float32, need)
	}
	for k0 := 0; k0 < p.k; k0 += depth {
		k1 := min(k0+depth, p.k)
		for i := range p.panels {
			j0, j1 := i*tileCols, min((i+1)*tileCols, p.n)
			if trans {
				p.panel(k0, i).pack(b.Slice(j0, j1, k0, k1), true)
			} else {
				p.panel(k0, i).pack(b.Slice(k0, k1, j0, j1), false)
			}
		}
	}
	return p
}

// panel returns panel i of b from row k to the end of the row's block.
func (p *Packed) panel(k, i int) *colPanel {
	first := k / depth * depth
	rows := min(depth, p.k-first)
	return (*colPanel)((*p.rows)[first*p.panels+i*rows+k-first:])
}

// Release ends the use of p.
func (p *Packed) Release() {
	packedRows.Put(p.rows)
	p.rows = nil
}

// Mul computes c[M,N'] = a[M,K']·b' on the caller's goroutine. b' is the K' rows and N' columns of b from row k0
// and column j0 on; j0 is a multiple of 32. The bits are those of [Mul]. c may extend up to the next multiple
// of 32 columns beyond b's last column, as if b had zeros there. Mul panics if shapes do not fit.
func (p *Packed) Mul(c, a Matrix, k0, j0 int) {
	c.check("c")
	a.check("a")
	if c.Rows != a.Rows || k0 < 0 || k0+a.Cols > p.k || j0 < 0 || j0%tileCols != 0 || j0+c.Cols > p.panels*tileCols {
		panic(fmt.Sprintf("sgemm: shapes do not match: c is %dx%d, a is %dx%d, b is %dx%d and used from (%d, %d) on",
			c.Rows, c.Cols, a.Rows, a.Cols, p.k, p.n, k0, j0))
	}
	if a.Cols == 0 {
		for i := range c.Rows {
			clear(c.Row(i))
		}
		return
	}
	packed := rowPanels.Get().(*rowPanel)
	defer rowPanels.Put(packed)
	for from := 0; from < c.Cols; from += width {
		part := c.Slice(0, c.Rows, from, min(from+width, c.Cols))
		for i := 0; i < part.Rows; i += tileRows {
			p.row(part.Slice(i, min(i+tileRows, part.Rows), 0, part.Cols), a.Slice(i, min(i+tileRows, a.Rows), 0, a.Cols), packed, k0, j0+from)
		}
	}
}

// row computes the tiles of one row of them.
func (p *Packed) row(c, a Matrix, packed *rowPanel, k0, j0 int) {
	for k := 0; k < a.Cols; {
		steps := min(depth-(k0+k)%depth, a.Cols-k)
		packed.pack(a.Slice(0, a.Rows, k, k+steps), false)
		for j := 0; j < c.Cols; j += tileCols {
			methods[0].tile(c.Data[j:], c.Stride, c.Rows, min(tileCols, c.Cols-j), packed, p.panel(k0+k, (j0+j)/tileCols), steps, k > 0)
		}
		k += steps
	}
}
