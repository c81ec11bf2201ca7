// Command gen writes package vector's vector kernels and their Go declarations. Run go generate in
// vector after a change here. Every kernel does the operations of its counterpart in Go in the same order, eight
// or sixteen elements at a time, and fuses none.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These are package vector's constants of the same names.
const (
	expSteps = 32
	expShift = 3 << 51
	expLimit = 700

	exp1 = math.Ln2 / expSteps
	exp2 = exp1 * exp1 / 2
	exp3 = exp1 * exp2 / 3
	exp4 = exp1 * exp3 / 4
	exp5 = exp1 * exp4 / 5

	geluSlope = 1.5957691216057308
	geluCube  = 0.044715
)

const (
	lanes      = 8 // float64 in a register
	floatBytes = 4
)

func main() {
	ConstraintExpr("!purego")
	expScaled()
	sigmoid("silu8", "x·sigmoid(x)", func(v reg.VecVirtual) reg.VecVirtual {
		x := ZMM()
		VPXORQ(constant("signBit", operand.U64(1<<63)), v, x)
		return x
	})
	sigmoid("gelu8", "x·sigmoid(slope·(x + 0.044715·x³))", func(v reg.VecVirtual) reg.VecVirtual {
		x := ZMM()
		VMULPD(v, v, x)
		VMULPD(v, x, x)
		VMULPD(constant("geluCube", operand.F64(geluCube)), x, x)
		VADDPD(x, v, x)
		VMULPD(constant("geluMinusSlope", operand.F64(-geluSlope)), x, x)
		return x
	})
	maximum()
	rowSums()
	Generate()
}

// constants are vectors with one value in every lane. They are loaded by each kernel that uses them.
var constants = map[string]operand.Mem{}

func constant(name string, value operand.Constant) operand.Mem {
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, 16|8) // RODATA, NOPTR
		for i := range lanes {
			DATA(8*i, value)
		}
		constants[name] = m
	}
	return m
}

// exponential is the part of e^x that both accuracies share: the table's value s = 2^(n/32), and the rest r.
type exponential struct{ table [4]reg.VecVirtual }

func newExponential() (e exponential) {
	table := Load(Param("table"), GP64())
	for i := range e.table {
		e.table[i] = ZMM()
		VMOVUPD(operand.Mem{Base: table, Disp: 64 * i}, e.table[i])
	}
	return e
}

func (e exponential) reduce(x reg.VecVirtual) (s, r reg.VecVirtual) {
	z, shifted := ZMM(), ZMM()
	r = ZMM()
	VMULPD(constant("expScale", operand.F64(expSteps/math.Ln2)), x, z)
	VADDPD(constant("expShift", operand.F64(expShift)), z, shifted)
	VSUBPD(constant("expShift", operand.F64(expShift)), shifted, r)
	VSUBPD(r, z, r)

	low, high, exponent := ZMM(), ZMM(), ZMM()
	upper := K()
	VMOVDQA64(shifted, low) // of an index 16 entries count, its lowest four bits
	VMOVDQA64(shifted, high)
	VPERMI2Q(e.table[1], e.table[0], low)
	VPERMI2Q(e.table[3], e.table[2], high)
	VPTESTMQ(constant("expUpper", operand.U64(16)), shifted, upper)
	VMOVDQA64(high, upper, low)
	VPSRLQ(operand.U8(5), shifted, exponent)
	VPSLLQ(operand.U8(52), exponent, exponent)
	VPADDQ(exponent, low, low)
	return low, r
}

// add is acc = constant + r·acc, rounded twice.
func add(name string, value float64, r, acc reg.VecVirtual) {
	VMULPD(r, acc, acc)
	VADDPD(constant(name, operand.F64(value)), acc, acc)
}

func expScaled() {
	TEXT("expScaled8", NOSPLIT, "func(row *float32, blocks int, scale, largest float32, table *uint64)")
	Doc("expScaled8 is expScaled's replacement of elements for 8·blocks of them, blocks ≥ 1.")
	Pragma("noescape")
	row, blocks := Load(Param("row"), GP64()), Load(Param("blocks"), GP64())
	scale, largest := YMM(), YMM()
	VBROADCASTSS(paramAddress("scale"), scale)
	VBROADCASTSS(paramAddress("largest"), largest)
	e := newExponential()

	Label("loop")
	v, x := YMM(), ZMM()
	VMOVUPS(operand.Mem{Base: row}, v)
	VSUBPS(largest, v, v)
	VMULPS(scale, v, v)
	VCVTPS2PD(v, x)
	least := ZMM()
	VMOVUPD(constant("expLeast", operand.F64(-104)), least)
	VMAXPD(x, least, x) // x itself where it is NaN
	s, r := e.reduce(x)
	p, square, q := ZMM(), ZMM(), ZMM()
	VMULPD(constant("exp1", operand.F64(exp1)), r, p)
	VMULPD(r, r, square)
	VMULPD(constant("exp3", operand.F64(exp3)), r, q)
	VADDPD(constant("exp2", operand.F64(exp2)), q, q)
	VMULPD(q, square, square)
	VADDPD(square, p, p)
	VMULPD(s, p, p)
	VADDPD(p, s, s)
	out := YMM()
	VCVTPD2PS(s, out)
	VMOVUPS(out, operand.Mem{Base: row})
	ADDQ(operand.U8(lanes*floatBytes), row)
	DECQ(blocks)
	JNZ(operand.LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// sigmoid writes a kernel of x/(1 + e^u), with u made from x by argument.
func sigmoid(name, doc string, argument func(v reg.VecVirtual) reg.VecVirtual) {
	TEXT(name, NOSPLIT, "func(to, from *float32, blocks int, table *uint64)")
	Doc(name + " writes " + doc + " of 8·blocks elements, blocks ≥ 1.")
	Pragma("noescape")
	to, from, blocks := Load(Param("to"), GP64()), Load(Param("from"), GP64()), Load(Param("blocks"), GP64())
	e := newExponential()

	Label("loop")
	v := ZMM()
	VCVTPS2PD(operand.Mem{Base: from}, v)
	x := argument(v)
	s, r := e.reduce(x)
	p := ZMM()
	VMOVUPD(constant("exp5", operand.F64(exp5)), p)
	add("exp4", exp4, r, p)
	add("exp3", exp3, r, p)
	add("exp2", exp2, r, p)
	add("exp1", exp1, r, p)
	VMULPD(r, p, p)
	VMULPD(s, p, p)
	VADDPD(p, s, s)
	over, under := K(), K()
	VCMPPD(operand.U8(13), constant("expLimit", operand.F64(expLimit)), x, over) // ≥
	VMOVUPD(constant("infinity", operand.U64(math.Float64bits(math.Inf(1)))), over, s)
	VCMPPD(operand.U8(2), constant("expMinusLimit", operand.F64(-expLimit)), x, under) // ≤
	VPXORQ(s, s, under, s)
	VADDPD(constant("one", operand.F64(1)), s, s)
	VDIVPD(s, v, v)
	out := YMM()
	VCVTPD2PS(v, out)
	VMOVUPS(out, operand.Mem{Base: to})
	ADDQ(operand.U8(lanes*floatBytes), from)
	ADDQ(operand.U8(lanes*floatBytes), to)
	DECQ(blocks)
	JNZ(operand.LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func maximum() {
	TEXT("maximum16", NOSPLIT, "func(row *float32, blocks int, lanes *float32)")
	Doc("maximum16 replaces each of 16 lanes by an element of its place in 16·blocks elements, blocks ≥ 1,",
		"where that is larger, one after the other.")
	Pragma("noescape")
	row, blocks, at := Load(Param("row"), GP64()), Load(Param("blocks"), GP64()), Load(Param("lanes"), GP64())
	most, v := ZMM(), ZMM()
	VMOVUPS(operand.Mem{Base: at}, most)
	Label("loop")
	VMOVUPS(operand.Mem{Base: row}, v)
	VMAXPS(most, v, most) // the old one where neither is larger
	ADDQ(operand.U8(64), row)
	DECQ(blocks)
	JNZ(operand.LabelRef("loop"))
	VMOVUPS(most, operand.Mem{Base: at})
	VZEROUPPER()
	RET()
}

func rowSums() {
	TEXT("rowSums8", NOSPLIT, "func(rows *[8]*float32, blocks int, sums *[8]float64)")
	Doc("rowSums8 adds 4·blocks elements of each of 8 rows to the row's sum, one after the other, blocks ≥ 1.")
	Pragma("noescape")
	rows, blocks, at := Load(Param("rows"), GP64()), Load(Param("blocks"), GP64()), Load(Param("sums"), GP64())
	var row [lanes]reg.Register
	for i := range row {
		row[i] = GP64()
		MOVQ(operand.Mem{Base: rows, Disp: 8 * i}, row[i])
	}
	sums, place := ZMM(), GP64()
	VMOVUPD(operand.Mem{Base: at}, sums)
	XORQ(place, place)
	Label("loop")
	var v, pairs [4]reg.VecVirtual // rows i and i + 4; then two rows' elements side by side
	for i := range v {
		v[i], pairs[i] = YMM(), YMM()
		VMOVUPS(operand.Mem{Base: row[i], Index: place, Scale: 1}, v[i].AsX())
		VINSERTF128(operand.U8(1), operand.Mem{Base: row[i+4], Index: place, Scale: 1}, v[i], v[i])
	}
	for i := 0; i < 4; i += 2 {
		VUNPCKLPS(v[i+1], v[i], pairs[i])
		VUNPCKHPS(v[i+1], v[i], pairs[i+1])
	}
	for i := range 4 { // the elements in place i of all rows
		column, wide := YMM(), ZMM()
		if i%2 == 0 {
			VUNPCKLPD(pairs[2+i/2], pairs[i/2], column)
		} else {
			VUNPCKHPD(pairs[2+i/2], pairs[i/2], column)
		}
		VCVTPS2PD(column, wide)
		VADDPD(wide, sums, sums)
	}
	ADDQ(operand.U8(4*floatBytes), place)
	DECQ(blocks)
	JNZ(operand.LabelRef("loop"))
	VMOVUPD(sums, operand.Mem{Base: at})
	VZEROUPPER()
	RET()
}

// paramAddress returns a parameter's place on the stack.
func paramAddress(name string) operand.Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}
