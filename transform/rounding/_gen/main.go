// Command gen writes package rounding's vector kernel and its Go declaration. Run go generate in rounding after a
// change here. The kernel performs the operations of the Go code on sixteen elements at a time.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	binade  = 1 << 23
	signBit = 1 << 31
	below   = 1 // the predicate "less than" of VPCMPUD
	atLeast = 5 // and "not less than"
)

func main() {
	ConstraintExpr("!purego")
	TEXT("nearest16", NOSPLIT, "func(t *float32, blocks int, gain float32, costs *float32, bits int, from, to uint32) int")
	Doc("nearest16 replaces targets by the best values, as prices.normal does with their signs, in blocks of 16.",
		"costs are those of 0 to bits significant bits, bits ≥ 1. It ends before the first block with a magnitude",
		"below from or not below to, and returns the number of blocks that are done. blocks ≥ 1.")
	Pragma("noescape")
	t, blocks := Load(Param("t"), GP64()), Load(Param("blocks"), GP64())
	costs, bits := Load(Param("costs"), GP64()), Load(Param("bits"), GP64())
	gain, from, to := ZMM(), ZMM(), ZMM()
	VBROADCASTSS(address("gain"), gain)
	VPBROADCASTD(Load(Param("from"), GP32()), from)
	VPBROADCASTD(Load(Param("to"), GP32()), to)
	magnitudes, one := broadcast("magnitudes", signBit-1), broadcast("one", 1)
	binades, step := broadcast("binades", ^uint32(binade-1)), broadcast("step", binade)
	half := broadcast("half", binade/2)
	done := GP64()
	XORQ(done, done)

	Label("block")
	b, mag, value := ZMM(), ZMM(), ZMM()
	inside := K()
	VMOVDQU32(operand.Mem{Base: t}, b)
	VPANDD(magnitudes, b, mag)
	VPCMPUD(operand.U8(atLeast), from, mag, inside)
	VPCMPUD(operand.U8(below), to, mag, inside, inside)
	KORTESTW(inside, inside)
	JCC(operand.LabelRef("end")) // unless all magnitudes are inside

	best := &choice{cost: ZMM(), value: ZMM(), mag: mag, gain: gain}
	VPXORD(value, value, value)
	at := GP64()
	MOVQ(costs, at)
	best.costOf(value, at, best.cost)
	VMOVDQA32(value, best.value)
	ADDQ(operand.U8(4), at)
	VPANDD(binades, mag, value)
	best.consider(value, at)
	VPADDD(step, value, value)
	best.consider(value, at)

	unit, mask := ZMM(), ZMM()
	left := GP64()
	VMOVDQA32(half, unit)
	MOVQ(bits, left)
	Label("bit")
	DECQ(left)
	JZ(operand.LabelRef("chosen"))
	ADDQ(operand.U8(4), at)
	VPADDD(unit, unit, mask)
	VPSUBD(one, mask, mask)
	VPANDND(mag, mask, value)
	VPORD(unit, value, value)
	best.consider(value, at)
	VPSRLD(operand.U8(1), unit, unit)
	JMP(operand.LabelRef("bit"))

	Label("chosen")
	nonzero := K()
	sign := ZMM()
	VPANDND(b, magnitudes, sign)
	VPTESTMD(best.value, best.value, nonzero)
	VPORD(sign, best.value, nonzero, best.value)
	VMOVDQU32(best.value, operand.Mem{Base: t})
	ADDQ(operand.U8(64), t)
	INCQ(done)
	CMPQ(done, blocks)
	JNE(operand.LabelRef("block"))

	Label("end")
	Store(done, ReturnIndex(0))
	VZEROUPPER()
	RET()
	Generate()
}

// choice is the best value so far of each lane, and its cost. Of equal costs it has the smaller value.
type choice struct{ cost, value, mag, gain reg.VecVirtual }

// costOf computes ((mag - value)·gain)² + cost.
func (c *choice) costOf(value reg.VecVirtual, cost reg.Register, into reg.VecVirtual) {
	VSUBPS(value, c.mag, into)
	VMULPS(c.gain, into, into)
	VMULPS(into, into, into)
	price := ZMM()
	VBROADCASTSS(operand.Mem{Base: cost}, price)
	VADDPS(price, into, into)
}

func (c *choice) consider(value reg.VecVirtual, at reg.Register) {
	cost := ZMM()
	c.costOf(value, at, cost)
	less, equal, better := K(), K(), K()
	VPCMPUD(operand.U8(below), c.cost, cost, less)
	VPCMPEQD(c.cost, cost, equal)
	VPCMPUD(operand.U8(below), c.value, value, equal, equal)
	KORW(less, equal, better)
	VMOVDQA32(cost, better, c.cost)
	VMOVDQA32(value, better, c.value)
}

func broadcast(name string, value uint32) reg.VecVirtual {
	m := GLOBL(name, 16|8) // RODATA, NOPTR
	DATA(0, operand.U32(value))
	v := ZMM()
	VPBROADCASTD(m, v)
	return v
}

func address(param string) operand.Mem {
	b, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}
