// Command gen writes package sgemm's kernels and their Go declarations. Run go generate in sgemm
// after a change here.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These are package sgemm's constants of the same names.
const (
	tileCols = 32
	rowStep  = 256 + 16
)

const (
	floatBytes   = 4
	panelRow     = tileCols * floatBytes
	prefetchRows = 16 // of b, ahead of their use
)

// kernel computes a tile of c of rows by cols vectors. Its sums stay in registers, and are so many
// that they hide the latency of the multiply-adds, with fewer loads than the processor has time for.
type kernel struct {
	name        string
	rows, cols  int
	held        int // vectors of a row of b that there are registers for, beside one for an element of a
	vectorBytes int
	vector      func() reg.VecVirtual
	clear       func(...operand.Op) // a xor b
}

func main() {
	ConstraintExpr("!purego")
	kernel{"AVX-512", 14, 2, 2, 64, ZMM, VPXORQ}.write()
	kernel{"AVX2", 7, 2, 1, 32, YMM, VXORPS}.write()
	Generate()
}

func (n kernel) write() {
	name := fmt.Sprintf("tile%dx%d", n.rows, n.cols*n.vectorBytes/floatBytes)
	TEXT(name, NOSPLIT, "func(c *float32, stride int, a, b *float32, k int, add bool)")
	Doc(name+" computes a tile of c, whose rows are stride elements apart, by "+n.name+", from packed rows",
		"of a and columns of b, over k ≥ 1 steps: from 0, or where add is set from its old values.")
	Pragma("noescape")

	c, stride := Load(Param("c"), GP64()), Load(Param("stride"), GP64())
	a, b, k := Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("k"), GP64())
	add := Load(Param("add"), GP8())
	SHLQ(operand.U8(2), stride) // in bytes

	sums := make([]reg.VecVirtual, n.rows*n.cols)
	for i := range sums {
		sums[i] = n.vector()
		n.clear(sums[i], sums[i], sums[i])
	}
	TESTB(add, add)
	JZ(operand.LabelRef("step"))
	n.forTile(c, stride, func(i int, m operand.Mem) { VMOVUPS(m, sums[i]) })

	Label("step")
	row := n.row(b)
	for i := range n.rows {
		element := n.vector()
		VBROADCASTSS(operand.Mem{Base: a, Disp: i * rowStep * floatBytes}, element)
		for v := range row {
			VFMADD231PS(row[v], element, sums[i*n.cols+v])
		}
	}
	ADDQ(operand.U8(floatBytes), a)
	SUBQ(operand.I8(-panelRow), b) // 128 is no signed byte, -128 is
	DECQ(k)
	JNZ(operand.LabelRef("step"))

	n.forTile(c, stride, func(i int, m operand.Mem) { VMOVUPS(sums[i], m) })
	VZEROUPPER()
	RET()
}

// row returns a row of b, loaded or where registers are short in memory.
func (n kernel) row(b reg.Register) []operand.Op {
	row := make([]operand.Op, n.cols)
	for v := range row {
		m := operand.Mem{Base: b, Disp: v * n.vectorBytes}
		row[v] = m
		if v < n.held {
			row[v] = n.vector()
			VMOVUPS(m, row[v])
		}
	}
	for at := 0; at < n.cols*n.vectorBytes; at += 64 { // a line of the cache
		PREFETCHT0(operand.Mem{Base: b, Disp: prefetchRows*panelRow + at})
	}
	return row
}

// forTile calls do for every vector of a tile.
func (n kernel) forTile(c, stride reg.Register, do func(i int, m operand.Mem)) {
	at := GP64()
	MOVQ(c, at)
	for i := range n.rows * n.cols {
		v := i % n.cols
		do(i, operand.Mem{Base: at, Disp: v * n.vectorBytes})
		if v == n.cols-1 {
			ADDQ(stride, at)
		}
	}
}
