// Command gen writes package codebytes's AVX-512 kernels and their Go declarations. Run go generate in codebytes after a
// change here.
package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	vectorBytes = 64
	planes      = 6 // Planes of package codebytes
)

func main() {
	ConstraintExpr("!purego")
	translate()
	add()
	spread()
	gather()
	Generate()
}

// at is vector i of the memory that p points to.
func at(p reg.Register, i int) operand.Mem { return operand.Mem{Base: p, Disp: i * vectorBytes} }

// param is a parameter that fits a register.
func param(name string) reg.Register { return Load(Param(name), GP64()) }

// load fills n vectors.
func load(p reg.Register, n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = ZMM()
		VMOVDQU8(at(p, i), v[i])
	}
	return v
}

// eachVector calls whole for each whole vector of a row, with its offset, and rest for the remaining bytes, whose lanes a
// mask selects. pointers move from row to row.
func eachVector(whole func(offset reg.Register), rest func(offset reg.Register, mask reg.Register), pointers ...reg.Register) {
	rows, count, stride := param("rows"), param("whole"), param("stride")
	bits := param("rest")
	mask := K()
	KMOVQ(bits, mask)
	offset, left := GP64(), GP64()

	Label("row")
	XORQ(offset, offset)
	MOVQ(count, left)
	TESTQ(left, left)
	JZ(operand.LabelRef("tail"))
	Label("vector")
	whole(offset)
	ADDQ(operand.U8(vectorBytes), offset)
	DECQ(left)
	JNZ(operand.LabelRef("vector"))
	Label("tail")
	TESTQ(bits, bits)
	JZ(operand.LabelRef("next"))
	rest(offset, mask)
	Label("next")
	for _, p := range pointers {
		ADDQ(stride, p)
	}
	DECQ(rows)
	JNZ(operand.LabelRef("row"))
}

// in is the memory at an offset from a pointer.
func in(p, offset reg.Register) operand.Mem { return operand.Mem{Base: p, Index: offset, Scale: 1} }

func translate() {
	TEXT("translate512", NOSPLIT, "func(dst, src *byte, rows, whole int, rest uint64, stride int, table *[256]byte)")
	Doc("translate512 looks up rows ≥ 1 rows: whole vectors, and then the bytes of the mask rest.")
	Pragma("noescape")
	table := load(param("table"), 4)
	dst, src := param("dst"), param("src")
	codes, low, high := ZMM(), ZMM(), ZMM()
	upper := K()
	look := func() {
		VMOVDQA64(codes, low)
		VMOVDQA64(codes, high)
		VPMOVB2M(codes, upper) // codes from 128 on
		VPERMI2B(table[1], table[0], low)
		VPERMI2B(table[3], table[2], high)
		VMOVDQU8(high, upper, low)
	}
	eachVector(func(offset reg.Register) {
		VMOVDQU8(in(src, offset), codes)
		look()
		VMOVDQU8(low, in(dst, offset))
	}, func(offset, mask reg.Register) {
		VMOVDQU8_Z(in(src, offset), mask, codes)
		look()
		VMOVDQU8(low, mask, in(dst, offset))
	}, dst, src)
	VZEROUPPER()
	RET()
}

func add() {
	TEXT("add512", NOSPLIT, "func(sums *[6][8]uint64, data *byte, rows, whole int, rest uint64, stride int, table *[6][128]byte)")
	Doc("add512 adds the numbers of rows ≥ 1 rows in eight lanes: whole vectors, and then the bytes of the mask rest.")
	Pragma("noescape")
	table := load(param("table"), 2*planes)
	sums, data := param("sums"), param("data")
	zero, codes, found := ZMM(), ZMM(), ZMM()
	VPXORQ(zero, zero, zero)
	total := make([]reg.VecVirtual, planes)
	for p := range total {
		total[p] = ZMM()
		VPXORQ(total[p], total[p], total[p])
	}
	eachPlane := func(look func(low, high reg.Register)) {
		for p := range total {
			VMOVDQA64(codes, found)
			look(table[2*p], table[2*p+1])
			VPSADBW(zero, found, found)
			VPADDQ(found, total[p], total[p])
		}
	}
	eachVector(func(offset reg.Register) {
		VMOVDQU8(in(data, offset), codes)
		eachPlane(func(low, high reg.Register) { VPERMI2B(high, low, found) })
	}, func(offset, mask reg.Register) {
		VMOVDQU8_Z(in(data, offset), mask, codes)
		eachPlane(func(low, high reg.Register) { VPERMI2B_Z(high, low, mask, found) })
	}, data)
	for p := range total {
		VMOVDQU64(total[p], at(sums, p))
	}
	VZEROUPPER()
	RET()
}

// blocks starts a kernel for n ≥ 1 blocks of 64 codes.
func blocks(name, doc string, more ...string) (dst, src, n reg.Register) {
	TEXT(name, NOSPLIT, "func("+strings.Join(append([]string{"dst, src *byte, n int"}, more...), ", ")+")")
	Doc(name+" "+doc, "n ≥ 1 is the number of blocks of 64 codes.")
	Pragma("noescape")
	return param("dst"), param("src"), param("n")
}

// words fills a vector with a word of 16 bits.
func words(word uint64) reg.VecVirtual {
	v, r := ZMM(), GP64()
	MOVQ(operand.U64(word*0x0001000100010001), r)
	VPBROADCASTQ(r, v)
	return v
}

// repeat ends the loop that begins at the label block.
func repeat(n reg.Register) {
	DECQ(n)
	JNZ(operand.LabelRef("block"))
	VZEROUPPER()
	RET()
}

func spread() {
	dst, src, n := blocks("spread512", "unpacks 4-bit codes to one byte each, the low half of a byte first.")
	low := words(0x0F0F)
	Label("block")
	pairs, upper := ZMM(), ZMM()
	VPMOVZXBW(operand.Mem{Base: src}, pairs)
	VPSLLW(operand.U8(4), pairs, upper)
	VPORQ(upper, pairs, pairs)
	VPANDQ(low, pairs, pairs)
	VMOVDQU8(pairs, operand.Mem{Base: dst})
	ADDQ(operand.U8(vectorBytes/2), src)
	ADDQ(operand.U8(vectorBytes), dst)
	repeat(n)
}

func gather() {
	dst, src, n := blocks("gather512", "is the inverse of spread512. Codes are below 16. It prefetches the codes ahead bytes later.", "ahead int")
	ahead := param("ahead")
	ADDQ(src, ahead)
	Label("block")
	PREFETCHT0(operand.Mem{Base: ahead})
	pairs, upper := ZMM(), ZMM()
	VMOVDQU8(operand.Mem{Base: src}, pairs)
	VPSRLW(operand.U8(4), pairs, upper)
	VPORQ(upper, pairs, pairs)
	VPMOVWB(pairs, operand.Mem{Base: dst})
	ADDQ(operand.U8(vectorBytes), src)
	ADDQ(operand.U8(vectorBytes), ahead)
	ADDQ(operand.U8(vectorBytes/2), dst)
	repeat(n)
}
