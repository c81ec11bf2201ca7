package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A block is the input of one round of the carry-save adders: sixteen vectors. Package cost passes chunks of blocks,
// and calls one function after the other on a chunk.
const (
	vectorBytes  = 64
	blockVectors = 16
	blockBytes   = blockVectors * vectorBytes
	chunkBlocks  = 8
)

// masks is a parameter of all functions: an array of masks, each with the same bits in every element. The order is
// that of lanes.masks512 in package cost.
const (
	sign = iota
	exp
	ordinaryOnes
	ordinaryZeros
	value
	magnitude
	normal
	maxFinite
	maxNumber
)

// function declares a function. It calls body, and then ends the function.
func function(name, signature, doc string, body func()) {
	TEXT(name, NOSPLIT, signature)
	Doc(name+" "+doc, "masks are as lanes.masks512 gives them, blocks is at least one.")
	Pragma("noescape")
	body()
	VZEROUPPER()
	RET()
}

// param returns a parameter that fits a register.
func param(name string) reg.Register { return Load(Param(name), GP64()) }

// broadcast fills vectors with masks.
func broadcast(masks ...int) []reg.VecVirtual {
	p := param("masks")
	v := make([]reg.VecVirtual, len(masks))
	for i, m := range masks {
		v[i] = ZMM()
		VPBROADCASTQ(operand.Mem{Base: p, Disp: 8 * m}, v[i])
	}
	return v
}

// at returns vector i of the memory at p.
func at(p reg.Register, i int) operand.Mem {
	return operand.Mem{Base: p, Disp: i * vectorBytes}
}

// forBlocks repeats body for each block and moves the pointers to the next block. The parameter blocks is the number
// of blocks.
func forBlocks(body func(), pointers ...reg.Register) {
	left := param("blocks")
	Label("block")
	body()
	for _, p := range pointers {
		ADDQ(operand.U32(blockBytes), p)
	}
	DECQ(left)
	JNZ(operand.LabelRef("block"))
}
