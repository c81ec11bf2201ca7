// Command gen writes package pairhash's kernel and its Go declaration. Run go generate in pairhash after a change here.
package main

import (
	"math/big"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	groups     = 16 // of four rounds
	groupBytes = 16 // of a block, and of the constants
)

func main() {
	ConstraintExpr("!purego")
	TEXT("blocks", NOSPLIT, "func(a, b *[8]uint32, p, q *byte, n int)")
	Doc("blocks adds n blocks of 64 bytes at p to the state a, and n blocks at q to the state b; n is above 0. The states have the order of FIPS 180-4: H0 to H7.")
	table, flip := constants(), flipped()
	lanes := []*lane{
		{state: param("a"), data: param("p"), s: [2]reg.VecPhysical{reg.X1, reg.X2}, m: [4]reg.VecPhysical{reg.X3, reg.X4, reg.X5, reg.X6}, saved: AllocLocal(32)},
		{state: param("b"), data: param("q"), s: [2]reg.VecPhysical{reg.X7, reg.X8}, m: [4]reg.VecPhysical{reg.X9, reg.X10, reg.X11, reg.X12}, saved: AllocLocal(32)},
	}
	left, k, mask := param("n"), GP64(), reg.X14
	LEAQ(table, k)
	MOVOU(flip, mask)
	for _, l := range lanes {
		l.load()
	}
	Label("block")
	for _, l := range lanes {
		l.save()
	}
	for i := range groups { // the lanes do not depend on each other, so that one works while the other waits
		for _, l := range lanes {
			l.first(i, k, mask)
		}
		for _, l := range lanes {
			l.schedule(i)
		}
	}
	for _, l := range lanes {
		l.add()
		ADDQ(operand.U8(64), l.data)
	}
	DECQ(left)
	JNZ(operand.LabelRef("block"))
	for _, l := range lanes {
		l.store()
	}
	RET()
	features()
	Generate()
}

// features writes the function that asks for the SHA instructions: bit 29 of EBX in leaf 7 of CPUID.
func features() {
	TEXT("leaf7", NOSPLIT, "func() (ebx uint32)")
	Doc("leaf7 returns EBX of leaf 7 of CPUID; 0 if the processor has no such leaf.")
	XORL(reg.EAX, reg.EAX)
	CPUID()
	XORL(reg.EBX, reg.EBX)
	CMPL(reg.EAX, operand.U8(7))
	JB(operand.LabelRef("done"))
	MOVL(operand.U32(7), reg.EAX)
	XORL(reg.ECX, reg.ECX)
	CPUID()
	Label("done")
	Store(reg.EBX, ReturnIndex(0))
	RET()
}

func param(name string) reg.Register { return Load(Param(name), GP64()) }

// lane is one of the two streams.
type lane struct {
	state, data reg.Register
	s           [2]reg.VecPhysical // the state as the instructions take it: A, B, E, F and C, D, G, H, from the highest lane down
	m           [4]reg.VecPhysical // the last 16 words of the message
	saved       operand.Mem        // the state before the block
}

// Registers that both lanes use one after the other.
const spill = 16

var (
	message = reg.X0 // message words with their constants; the instructions take no other register
	other   = reg.X13
)

func at(p reg.Register, i int) operand.Mem { return operand.Mem{Base: p, Disp: i * groupBytes} }

// load turns H0 to H7 into the instructions' order.
func (l *lane) load() {
	MOVOU(at(l.state, 0), l.s[0])            // D C B A, the highest lane first
	MOVOU(at(l.state, 1), l.s[1])            // H G F E
	PSHUFD(operand.U8(0xb1), l.s[0], l.s[0]) // C D A B
	PSHUFD(operand.U8(0x1b), l.s[1], l.s[1]) // E F G H
	MOVOU(l.s[0], other)                     // C D A B
	PALIGNR(operand.U8(8), l.s[1], l.s[0])   // A B E F
	PBLENDW(operand.U8(0xf0), other, l.s[1]) // C D G H
}

// store is the inverse of load.
func (l *lane) store() {
	PSHUFD(operand.U8(0x1b), l.s[0], l.s[0])  // F E B A
	PSHUFD(operand.U8(0xb1), l.s[1], l.s[1])  // D C H G
	MOVOU(l.s[0], other)                      // F E B A
	PBLENDW(operand.U8(0xf0), l.s[1], l.s[0]) // D C B A
	PALIGNR(operand.U8(8), other, l.s[1])     // H G F E
	MOVOU(l.s[0], at(l.state, 0))
	MOVOU(l.s[1], at(l.state, 1))
}

func (l *lane) save() {
	MOVOU(l.s[0], l.saved.Offset(0))
	MOVOU(l.s[1], l.saved.Offset(spill))
}

// add adds the state before the block.
func (l *lane) add() {
	for i, s := range l.s {
		MOVOU(l.saved.Offset(i*spill), other)
		PADDD(other, s)
	}
}

// word returns the register of the message words of a group.
func (l *lane) word(group int) reg.VecPhysical { return l.m[(group+4)%4] }

// first does rounds 0 and 1 of a group, and reads its message words if they are in the block.
func (l *lane) first(i int, k reg.Register, mask reg.VecPhysical) {
	w := l.word(i)
	if i < 4 {
		MOVOU(at(l.data, i), w)
		PSHUFB(mask, w)
	}
	MOVOU(at(k, i), message)
	PADDD(w, message)
	SHA256RNDS2(message, l.s[0], l.s[1])
	PSHUFD(operand.U8(0x0e), message, message)
	SHA256RNDS2(message, l.s[1], l.s[0])
}

// schedule computes message words of later groups.
func (l *lane) schedule(i int) {
	before, now, next := l.word(i-1), l.word(i), l.word(i+1)
	if i >= 3 && i < groups-1 {
		MOVOU(now, other)
		PALIGNR(operand.U8(4), before, other)
		PADDD(other, next)
		SHA256MSG2(now, next)
	}
	if i >= 1 && i < groups-3 {
		SHA256MSG1(now, before)
	}
}

// flipped is the order of the bytes of a group: big-endian words.
func flipped() operand.Mem {
	d := GLOBL("flip", RODATA|NOPTR)
	DATA(0, operand.U64(0x0405060700010203))
	DATA(8, operand.U64(0x0c0d0e0f08090a0b))
	return d
}

// constants are the 64 constants of FIPS 180-4: the first 32 bits of the fractional parts of the cube roots of the
// first 64 primes.
func constants() operand.Mem {
	d := GLOBL("constants", RODATA|NOPTR)
	prime := int64(2)
	for i := range 4 * groups {
		for !big.NewInt(prime).ProbablyPrime(0) {
			prime++
		}
		DATA(4*i, operand.U32(fraction(prime)))
		prime++
	}
	return d
}

// fraction returns the first 32 bits after the point of a number's cube root: the root of number << 96 has 32 of them.
func fraction(number int64) uint32 {
	cube := new(big.Int).Lsh(big.NewInt(number), 96)
	root, step := new(big.Int), new(big.Int)
	for bit := 40; bit >= 0; bit-- {
		step.SetBit(root, bit, 1)
		if new(big.Int).Exp(step, big.NewInt(3), nil).Cmp(cube) <= 0 {
			root.Set(step)
		}
	}
	return uint32(root.Uint64())
}
