package sgemm

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Op has the options of a product. The zero value is c = a·b, on all processors.
type Op struct {
	TransA  bool // a is given as [K,M]
	TransB  bool // b is given as [N,K]
	Add     bool // add to c's old values
	Workers int  // goroutines at most; 0: all processors
}

// Mul computes c[M,N] = a[M,K]·b[K,N]. It panics if shapes do not fit. It returns ctx's error well under a second
// after ctx ends; c is then partly computed.
func Mul(ctx context.Context, c, a, b Matrix, op Op) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	return newProduct(c, a, b, op, methods[0].tile).run(ctx)
}

// product is a product while it is computed.
type product struct {
	c, a, b Matrix
	k       int
	op      Op
	tile    tile
}

func newProduct(c, a, b Matrix, op Op, t tile) *product {
	c.check("c")
	a.check("a")
	b.check("b")
	m, k := a.Rows, a.Cols
	if op.TransA {
		m, k = k, m
	}
	kb, n := b.Rows, b.Cols
	if op.TransB {
		kb, n = n, kb
	}
	if k != kb || c.Rows != m || c.Cols != n {
		panic(fmt.Sprintf("sgemm: shapes do not match: c is %dx%d, a is %dx%d, b is %dx%d, with options %+v",
			c.Rows, c.Cols, a.Rows, a.Cols, b.Rows, b.Cols, op))
	}
	op.Workers = parallel.Workers(op.Workers)
	return &product{c, a, b, k, op, t}
}

// run goes over the blocks of b. All workers pack a block, and then sweep over it.
func (p *product) run(ctx context.Context) error {
	if p.k == 0 && !p.op.Add {
		for i := range p.c.Rows {
			clear(p.c.Row(i))
		}
	}
	if p.c.Rows == 0 || p.c.Cols == 0 || p.k == 0 {
		return ctx.Err()
	}
	packed := blocks.Get().(*block)
	defer blocks.Put(packed)
	for j := 0; j < p.c.Cols; j += width {
		for k := 0; k < p.k; k += depth {
			s := sweep{p, packed, j, min(j+width, p.c.Cols), k, min(k+depth, p.k)}
			if err := s.run(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep is the part of a product that uses one block of b: columns j0 to j1 of c, steps k0 to k1 of their
// chains.
type sweep struct {
	*product
	block          *block
	j0, j1, k0, k1 int
}

func (s *sweep) run(ctx context.Context) error {
	panels := ceilDiv(s.j1-s.j0, tileCols)
	err := parallel.Run(ctx, panels, s.op.Workers, func(_ context.Context, panel int) error {
		s.pack(panel)
		return nil
	})
	if err != nil {
		return err
	}
	// A job is all panels of b for some rows of a, or some of the panels if c has so few rows that workers
	// would be idle.
	rows := ceilDiv(s.c.Rows, tileRows)
	parts := min(panels, ceilDiv(jobsPerWorker*s.op.Workers, rows))
	if s.op.Workers == 1 {
		parts = 1
	}
	return parallel.Run(ctx, rows*parts, s.op.Workers, func(_ context.Context, job int) error {
		i, part := job/parts*tileRows, job%parts
		s.row(i, part*panels/parts, (part+1)*panels/parts)
		return nil
	})
}

// pack packs panel n of the block.
func (s *sweep) pack(n int) {
	j0 := s.j0 + n*tileCols
	j1 := min(j0+tileCols, s.j1)
	if s.op.TransB {
		s.block[n].pack(s.b.Slice(j0, j1, s.k0, s.k1), true)
	} else {
		s.block[n].pack(s.b.Slice(s.k0, s.k1, j0, j1), false)
	}
}

// row computes the tiles of the rows from i0 on, for the given panels of the block.
func (s *sweep) row(i0, from, to int) {
	i1 := min(i0+tileRows, s.c.Rows)
	a := rowPanels.Get().(*rowPanel)
	defer rowPanels.Put(a)
	if s.op.TransA {
		a.pack(s.a.Slice(s.k0, s.k1, i0, i1), true)
	} else {
		a.pack(s.a.Slice(i0, i1, s.k0, s.k1), false)
	}
	c, stride, rows, steps, add := s.c.Data[i0*s.c.Stride:], s.c.Stride, i1-i0, s.k1-s.k0, s.op.Add || s.k0 > 0
	for n := from; n < to; n++ {
		j := s.j0 + n*tileCols
		s.tile(c[j:], stride, rows, min(tileCols, s.j1-j), a, &s.block[n], steps, add)
	}
}

// jobsPerWorker is large enough that all workers end at about the same time.
const jobsPerWorker = 4

func ceilDiv(a, b int) int { return (a + b - 1) / b }
