package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lane is an element's width with the instructions for this width.
type lane struct {
	bits    int
	testNot func(...operand.Op) // marks the lanes in which no bit of a mask is set
	compare func(...operand.Op) // marks the lanes for which the immediate's comparison holds, unsigned
	max     func(...operand.Op) // lane by lane, unsigned
	move    func(k, r operand.Op)
}

var lanes = []lane{
	{8, VPTESTNMB, VPCMPUB, VPMAXUB, KMOVQ},
	{16, VPTESTNMW, VPCMPUW, VPMAXUW, KMOVD},
	{32, VPTESTNMD, VPCMPUD, VPMAXUD, KMOVW},
}

// Indices of the counts in the parameter sums.
const (
	zeros = iota
	zerosBefore
	zerosAbove
	notNormal
	notFinite
	nans
	sumCount
)

func (l lane) addSpecials() {
	const signature = "func(sums *[6]uint64, cur, before, above *byte, blocks int, masks *[9]uint64)"
	doc := fmt.Sprintf("counts what is rare in elements of %d bits. sums are those of specials512.", l.bits)
	function(fmt.Sprintf("addSpecials%d", l.bits), signature, doc, func() {
		state := param("sums")
		sums := make([]reg.GPVirtual, sumCount)
		for i := range sums {
			sums[i] = GP64()
			MOVQ(operand.Mem{Base: state, Disp: 8 * i}, sums[i])
		}
		cur, before, above := param("cur"), param("before"), param("above")
		masks := broadcast(value, normal, magnitude, maxFinite, maxNumber)
		forBlocks(func() {
			largest := l.addSmall(sums, cur, before, above, masks)
			found := K()
			l.above(largest, masks[3], found)
			KORTESTQ(found, found)
			JZ(operand.LabelRef("finite"))
			l.addBig(sums, cur, masks)
			Label("finite")
		}, cur, before, above)
		for i := range sums {
			MOVQ(sums[i], operand.Mem{Base: state, Disp: 8 * i})
		}
	})
}

// addSmall counts a block's zeros and subnormal numbers. It returns the largest magnitudes.
func (l lane) addSmall(sums []reg.GPVirtual, cur, before, above reg.Register, masks []reg.VecVirtual) reg.VecVirtual {
	value, normal, magnitude := masks[0], masks[1], masks[2]
	largest := ZMM()
	VPXORQ(largest, largest, largest)
	for i := range blockVectors {
		v, zero := ZMM(), K()
		VMOVDQU64(at(cur, i), v)
		l.testNot(v, value, zero)
		l.count(zero, sums[zeros])
		for j, neighbour := range []reg.Register{before, above} {
			both := K()
			l.testNot(at(neighbour, i), value, zero, both)
			l.count(both, sums[zerosBefore+j])
		}
		small := K()
		l.testNot(v, normal, small)
		l.count(small, sums[notNormal])
		VPANDQ(magnitude, v, v)
		l.max(v, largest, largest)
	}
	return largest
}

// addBig counts a block's infinities and NaN. They are very rare.
func (l lane) addBig(sums []reg.GPVirtual, cur reg.Register, masks []reg.VecVirtual) {
	magnitude, limits := masks[2], masks[3:]
	for i := range blockVectors {
		v := ZMM()
		VPANDQ(at(cur, i), magnitude, v)
		for j, limit := range limits {
			big := K()
			l.above(v, limit, big)
			l.count(big, sums[notFinite+j])
		}
	}
}

// above marks the lanes of v that are larger than the lanes of limit.
func (l lane) above(v, limit reg.VecVirtual, marks reg.Register) {
	const notLessOrEqual = 6
	l.compare(operand.U8(notLessOrEqual), limit, v, marks)
}

// count adds the number of marks to sum.
func (l lane) count(marks reg.Register, sum reg.GPVirtual) {
	n := GP64()
	if l.bits == 8 {
		l.move(marks, n)
	} else {
		l.move(marks, n.As32())
	}
	POPCNTQ(n, n)
	ADDQ(n, sum)
}
