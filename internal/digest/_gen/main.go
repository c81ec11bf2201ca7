// Command gen writes package digest's kernel and its Go declaration. Run go generate in digest after a change here.
package main

import (
	"math"
	"math/big"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const blockBytes = 64

func main() {
	ConstraintExpr("!purego")
	hasSHA()
	blocks()
	Generate()
}

func hasSHA() {
	TEXT("hasSHA", NOSPLIT, "func() bool")
	Doc("hasSHA reports whether the processor has SHA instructions: bit 29 of EBX in leaf 7 of CPUID.")
	MOVL(operand.U32(7), reg.EAX)
	XORL(reg.ECX, reg.ECX)
	CPUID()
	SHRL(operand.U8(29), reg.EBX)
	ANDL(operand.U32(1), reg.EBX)
	Store(reg.BL, ReturnIndex(0))
	RET()
}

// constants are those of SHA-256: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
func constants() operand.Mem {
	m := GLOBL("constants", RODATA|NOPTR)
	i := 0
	for n := int64(2); i < 64; n++ {
		if !big.NewInt(n).ProbablyPrime(0) {
			continue
		}
		DATA(4*i, operand.U32(cubeRoot(n)))
		i++
	}
	return m
}

// cubeRoot is the first 32 bits of the fractional part.
func cubeRoot(n int64) uint32 {
	cube := new(big.Int).Lsh(big.NewInt(n), 96)
	root := new(big.Int).SetUint64(uint64(math.Cbrt(float64(n)) * (1 << 32)))
	root.Sub(root, big.NewInt(1<<12)) // surely below
	for one := big.NewInt(1); ; root.Add(root, one) {
		next := new(big.Int).Add(root, one)
		if next.Exp(next, big.NewInt(3), nil).Cmp(cube) > 0 {
			return uint32(root.Uint64())
		}
	}
}

// swap reverses the bytes of each word.
func swap() operand.Mem {
	m := GLOBL("swap", RODATA|NOPTR)
	for i := range 4 {
		DATA(4*i, operand.U32(0x00010203+0x04040404*uint32(i)))
	}
	return m
}

// stream is one of two messages.
type stream struct {
	state, data reg.Register
	feba, hgdc  reg.VecVirtual
	words       [4]reg.VecVirtual // of the message; the next ones take their places
	temporary   reg.VecVirtual
}

func newStream(name string) *stream {
	s := &stream{state: Load(Param("state"+name), GP64()), data: Load(Param("data"+name), GP64()), feba: XMM(), hgdc: XMM(), temporary: XMM()}
	for i := range s.words {
		s.words[i] = XMM()
	}
	MOVOU(operand.Mem{Base: s.state}, s.feba)
	MOVOU(operand.Mem{Base: s.state, Disp: 16}, s.hgdc)
	return s
}

// schedule makes the words of later rounds, in round i of sixteen.
func (s *stream) schedule(i int) {
	now, before, next := s.words[i%4], s.words[(i+3)%4], s.words[(i+1)%4]
	if i >= 3 && i < 15 {
		MOVOU(now, s.temporary)
		PALIGNR(operand.U8(4), before, s.temporary)
		PADDD(s.temporary, next)
		SHA256MSG2(now, next)
	}
	if i >= 1 && i < 13 {
		SHA256MSG1(now, before)
	}
}

func blocks() {
	k, bytes := constants(), swap()
	TEXT("blocks", NOSPLIT, "func(stateA, stateB *[8]uint32, dataA, dataB *byte, n int)")
	Doc("blocks hashes n ≥ 1 blocks of two messages. States have the order F, E, B, A, H, G, D, C.")
	Pragma("noescape")
	a, b := newStream("A"), newStream("B")
	n := Load(Param("n"), GP64())
	table := GP64()
	LEAQ(k, table)
	order := XMM()
	MOVOU(bytes, order)
	both := []*stream{a, b}

	Label("block")
	for _, s := range both {
		for i, w := range s.words {
			MOVOU(operand.Mem{Base: s.data, Disp: 16 * i}, w)
			PSHUFB(order, w)
		}
	}
	for i := range 16 {
		for _, s := range both {
			MOVOU(operand.Mem{Base: table, Disp: 16 * i}, s.temporary)
			PADDD(s.words[i%4], s.temporary)
			MOVOU(s.temporary, reg.X0)
			SHA256RNDS2(reg.X0, s.feba, s.hgdc)
		}
		for _, s := range both {
			PSHUFD(operand.U8(0x0E), s.temporary, reg.X0)
			SHA256RNDS2(reg.X0, s.hgdc, s.feba)
		}
		for _, s := range both {
			s.schedule(i)
		}
	}
	for _, s := range both {
		for i, half := range []reg.VecVirtual{s.feba, s.hgdc} {
			MOVOU(operand.Mem{Base: s.state, Disp: 16 * i}, s.temporary)
			PADDD(s.temporary, half)
			MOVOU(half, operand.Mem{Base: s.state, Disp: 16 * i})
		}
		ADDQ(operand.U8(blockBytes), s.data)
	}
	DECQ(n)
	JNZ(operand.LabelRef("block"))
	RET()
}
