// Command gen writes package codebytes's AVX-512 kernels and their Go declarations. Run go generate in codebytes after a
// change here.
package main

import (
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
	transpose()
	spreadColumn()
	gatherColumn()
	Generate()
}

// at returns vector i of the memory at p.
func at(p reg.Register, i int) operand.Mem { return operand.Mem{Base: p, Disp: i * vectorBytes} }

// param returns a parameter that fits a register.
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

// eachVector calls whole for each whole vector of a row, with the vector's offset. It calls rest for the remaining
// bytes; mask selects their lanes. pointers move from row to row.
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

// in returns the memory at an offset from a pointer.
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
		VPMOVB2M(codes, upper) // marks codes from 128 on
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

// blocks begins a kernel for n ≥ 1 blocks of 64 codes.
func blocks(name, signature, doc string) (dst, src, n reg.Register) {
	TEXT(name, NOSPLIT, signature)
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

// repeat ends the loop that began at the label block.
func repeat(n reg.Register) {
	DECQ(n)
	JNZ(operand.LabelRef("block"))
}

func end() {
	VZEROUPPER()
	RET()
}

func spread() {
	dst, src, n := blocks("spread512", "func(dst, src *byte, n int)", "unpacks 4-bit codes to one byte each, the low half of a byte first.")
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
	end()
}

func gather() {
	dst, src, n := blocks("gather512", "func(dst, src *byte, n, ahead int) (above uint64)",
		"is the inverse of spread512. It prefetches the codes ahead bytes later. above is 0 if all codes are below 16.")
	ahead := param("ahead")
	ADDQ(src, ahead)
	all := none()
	Label("block")
	PREFETCHT0(operand.Mem{Base: ahead})
	pairs, upper := ZMM(), ZMM()
	VMOVDQU8(operand.Mem{Base: src}, pairs)
	VPORQ(pairs, all, all)
	VPSRLW(operand.U8(4), pairs, upper)
	VPORQ(upper, pairs, pairs)
	VPMOVWB(pairs, operand.Mem{Base: dst})
	ADDQ(operand.U8(vectorBytes), src)
	ADDQ(operand.U8(vectorBytes), ahead)
	ADDQ(operand.U8(vectorBytes/2), dst)
	repeat(n)
	returnAbove(all)
	end()
}

// none returns a vector of zeros.
func none() reg.VecVirtual {
	v := ZMM()
	VPXORQ(v, v, v)
	return v
}

// returnAbove returns a mask of the bytes that are not below 16. all is the bitwise or of all codes.
func returnAbove(all reg.Register) {
	mask, above := K(), GP64()
	VPTESTMB(words(0xF0F0), all, mask)
	KMOVQ(mask, above)
	Store(above, Return("above"))
}

// eachRow calls do with the memory of n rows. The rows are stride bytes apart.
func eachRow(p, stride reg.Register, n int, do func(i int, row operand.Mem)) {
	at := GP64()
	MOVQ(p, at)
	for i := range n {
		if do(i, operand.Mem{Base: at}); i < n-1 {
			ADDQ(stride, at)
		}
	}
}

// shuffle applies VSHUFI32X4 to two vectors.
func shuffle(lanes uint8, a, b reg.Register) reg.Register {
	v := ZMM()
	VSHUFI32X4(operand.U8(lanes), b, a, v)
	return v
}

// Selections of 128-bit lanes from two vectors, for shuffle.
const (
	evenLanes  = 0x88
	oddLanes   = 0xDD
	lowerLanes = 0x44
	upperLanes = 0xEE
)

func transpose() {
	TEXT("transpose512", NOSPLIT, "func(dst, src *byte, to, from, n int)")
	Doc("transpose512 transposes n ≥ 1 neighbouring blocks of 16 × 16 words of 32 bits. Rows are from bytes apart in src, and to",
		"bytes apart in dst.")
	Pragma("noescape")
	dst, src, to, from, n := param("dst"), param("src"), param("to"), param("from"), param("n")
	Label("block")
	var rows, quads [16]reg.Register
	eachRow(src, from, 16, func(i int, row operand.Mem) {
		v := ZMM()
		VMOVDQU32(row, v)
		rows[i] = v
	})
	for g := 0; g < 16; g += 4 { // lane l of quads[g+q] becomes word 4·l+q of rows g to g+3
		var pairs [4]reg.VecVirtual
		for i := range 2 {
			pairs[2*i], pairs[2*i+1] = ZMM(), ZMM()
			VPUNPCKLDQ(rows[g+2*i+1], rows[g+2*i], pairs[2*i])
			VPUNPCKHDQ(rows[g+2*i+1], rows[g+2*i], pairs[2*i+1])
		}
		for i := range 2 {
			low, high := ZMM(), ZMM()
			VPUNPCKLQDQ(pairs[2+i], pairs[i], low)
			VPUNPCKHQDQ(pairs[2+i], pairs[i], high)
			quads[g+2*i], quads[g+2*i+1] = low, high
		}
	}
	var out [16]reg.Register
	for q := range 4 {
		for l, lanes := range []uint8{evenLanes, oddLanes} {
			a, b := shuffle(lanes, quads[q], quads[4+q]), shuffle(lanes, quads[8+q], quads[12+q])
			out[4*l+q], out[4*(l+2)+q] = shuffle(evenLanes, a, b), shuffle(oddLanes, a, b)
		}
	}
	eachRow(dst, to, 16, func(i int, row operand.Mem) { VMOVDQU32(out[i], row) })
	ADDQ(operand.U8(vectorBytes), src)
	SHLQ(operand.U8(4), to)
	ADDQ(to, dst)
	SHRQ(operand.U8(4), to)
	repeat(n)
	end()
}

// bytes returns a constant vector.
func bytes(name string, value func(i int) int) reg.Register {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range vectorBytes {
		DATA(i, operand.U8(value(i)))
	}
	v := ZMM()
	VMOVDQU8(m, v)
	return v
}

// select2 selects bytes of two vectors by place.
func select2(places, a, b reg.Register) reg.Register {
	v := ZMM()
	VMOVDQA64(places, v)
	VPERMI2B(b, a, v)
	return v
}

// columnRows is the order of a word's half bytes in a column's rows: the low halves of bytes 0 and 2, their high
// halves, then the halves of bytes 1 and 3.
var columnRows = [8]struct {
	part int
	high bool
}{{0, false}, {2, false}, {0, true}, {2, true}, {1, false}, {3, false}, {1, true}, {3, true}}

func spreadColumn() {
	TEXT("spreadColumn512", NOSPLIT, "func(dst, src *byte, stride int)")
	Doc("spreadColumn512 is SpreadColumn for 64 words.")
	Pragma("noescape")
	dst, src, stride := param("dst"), param("src"), param("stride")
	first := bytes("firstBytes", func(i int) int { return 4*(i%32) + i/32 })
	last := bytes("lastBytes", func(i int) int { return 4*(i%32) + i/32 + 2 })
	low := words(0x0F0F)
	data := load(src, 4)
	var parts [4]reg.Register // byte i of all words
	for i, places := range []reg.Register{first, last} {
		a, b := select2(places, data[0], data[1]), select2(places, data[2], data[3])
		parts[2*i], parts[2*i+1] = shuffle(lowerLanes, a, b), shuffle(upperLanes, a, b)
	}
	eachRow(dst, stride, 8, func(i int, row operand.Mem) {
		v, part := ZMM(), parts[columnRows[i].part]
		if columnRows[i].high {
			VPSRLW(operand.U8(4), part, v)
			VPANDQ(low, v, v)
		} else {
			VPANDQ(low, part, v)
		}
		VMOVDQU8(v, row)
	})
	end()
}

func gatherColumn() {
	TEXT("gatherColumn512", NOSPLIT, "func(dst, src *byte, stride int) (above uint64)")
	Doc("gatherColumn512 is the inverse of spreadColumn512. above is 0 if all codes are below 16.")
	Pragma("noescape")
	dst, src, stride := param("dst"), param("src"), param("stride")
	// A vector with byte 0 of 32 words and then their byte 1, and a vector with bytes 2 and 3: the first or last 16
	// words.
	place := func(from int) func(i int) int {
		return func(i int) int { return i%4%2*32 + i%4/2*64 + i/4 + from }
	}
	first, last := bytes("firstWords", place(0)), bytes("lastWords", place(16))
	all := none()
	var parts [4]reg.VecVirtual
	for i := range parts {
		parts[i] = none()
	}
	eachRow(src, stride, 8, func(i int, row operand.Mem) {
		v, part := ZMM(), parts[columnRows[i].part]
		VMOVDQU8(row, v)
		VPORQ(v, all, all)
		if columnRows[i].high {
			VPSLLW(operand.U8(4), v, v)
		}
		VPORQ(v, part, part)
	})
	for i, lanes := range []uint8{lowerLanes, upperLanes} {
		a, b := shuffle(lanes, parts[0], parts[1]), shuffle(lanes, parts[2], parts[3])
		VMOVDQU8(select2(first, a, b), at(dst, 2*i))
		VMOVDQU8(select2(last, a, b), at(dst, 2*i+1))
	}
	returnAbove(all)
	end()
}
