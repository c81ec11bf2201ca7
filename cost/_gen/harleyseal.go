package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An immediate of VPTERNLOGQ is the truth table of a function of three bits. a is the last operand and receives the
// result. b and c are the two operands before it; for these functions their order does not matter.
const (
	all3   = 0x80 // a ∧ b ∧ c
	any3   = 0xFE // a ∨ b ∨ c
	sum    = 0x96 // a ⊕ b ⊕ c
	carry  = 0xE8 // the majority of a, b and c
	orBoth = 0xF8 // a ∨ b∧c
)

const levels = 4 // ones, twos, fours, eights

// positional is a Harley–Seal counter in registers. Between calls it is in memory at the parameter p: a sum for each
// level, then the counts.
type positional struct {
	sums   []reg.VecVirtual
	counts []reg.VecVirtual // sixteens: bits of the sign, of the exponent, of all fields
	fields []reg.VecVirtual // masks of sign and exponent
}

// use loads a counter, runs body and stores the counter.
func (p *positional) use(body func()) {
	state := param("p")
	v := make([]reg.VecVirtual, levels+3)
	for i := range v {
		v[i] = ZMM()
		VMOVDQU64(at(state, i), v[i])
	}
	p.sums, p.counts = v[:levels], v[levels:]
	body()
	for i := range v {
		VMOVDQU64(v[i], at(state, i))
	}
}

// addBlock counts a block. Each call of pair returns the block's next two vectors.
func (p *positional) addBlock(pair func() (x, y reg.VecVirtual)) {
	sixteens := p.carry(levels-1, pair)
	for i, mask := range p.fields {
		field := ZMM()
		VPANDQ(mask, sixteens, field)
		VPOPCNTQ(field, field)
		VPADDQ(field, p.counts[i], p.counts[i])
	}
	VPOPCNTQ(sixteens, sixteens)
	VPADDQ(sixteens, p.counts[2], p.counts[2])
}

// carry adds two vectors (at higher levels, two carries of the level below) to a level's sum.
func (p *positional) carry(level int, pair func() (x, y reg.VecVirtual)) reg.VecVirtual {
	var x, y reg.VecVirtual
	if level == 0 {
		x, y = pair()
	} else {
		x = p.carry(level-1, pair)
		y = p.carry(level-1, pair)
	}
	out := ZMM()
	VMOVDQA64(p.sums[level], out)
	VPTERNLOGQ(operand.U8(carry), y, x, out)
	VPTERNLOGQ(operand.U8(sum), y, x, p.sums[level])
	return out
}

func addXor() {
	const signature = "func(p *[7][8]uint64, a, b *byte, blocks int, masks *[9]uint64)"
	function("addXor512", signature, "counts the bits in which a and b differ.", func() {
		p := positional{fields: broadcast(sign, exp)}
		p.use(func() {
			a, b := param("a"), param("b")
			forBlocks(func() {
				i := 0
				next := func() reg.VecVirtual {
					v := ZMM()
					VMOVDQU64(at(a, i), v)
					VPXORQ(at(b, i), v, v)
					// Prefetch the next chunk from memory while this one is counted.
					PREFETCHT0(at(a, chunkBlocks*blockVectors+i))
					i++
					return v
				}
				p.addBlock(func() (x, y reg.VecVirtual) { return next(), next() })
			}, a, b)
		})
	})
}

func addOnes() {
	const signature = "func(p *[7][8]uint64, a *byte, special *uint16, blocks int, masks *[9]uint64)"
	const doc = "counts the bits set in a. Of special, a block's value is 0 where all elements are ordinary."
	function("addOnes512", signature, doc, func() {
		ordinary := broadcast(ordinaryOnes, ordinaryZeros)
		p := positional{fields: broadcast(sign, exp)}
		p.use(func() {
			a, special := param("a"), param("special")
			forBlocks(func() {
				i, all, any := 0, ZMM(), ZMM()
				p.addBlock(func() (x, y reg.VecVirtual) {
					x, y = ZMM(), ZMM()
					VMOVDQU64(at(a, i), x)
					VMOVDQU64(at(a, i+1), y)
					if i == 0 {
						VPANDQ(x, y, all)
						VPORQ(x, y, any)
					} else {
						VPTERNLOGQ(operand.U8(all3), x, y, all)
						VPTERNLOGQ(operand.U8(any3), x, y, any)
					}
					i += 2
					return x, y
				})
				found := K()
				VPANDNQ(ordinary[0], all, all)
				VPTERNLOGQ(operand.U8(orBoth), ordinary[1], any, all)
				VPTESTMQ(all, all, found)
				KMOVW(found, operand.Mem{Base: special})
				ADDQ(operand.U8(2), special)
			}, a)
		})
	})
}
