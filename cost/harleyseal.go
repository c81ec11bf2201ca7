package cost

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// A group is the unit of the fast path: sixteen words. It has no alignment, so groups may begin at any byte.
const (
	groupWords = 16
	groupBytes = 8 * groupWords
)

type group [groupBytes]byte

// blockGroups is the number of groups that one counter reads before the next counter reads the same groups. This few
// groups stay in the nearest cache.
const blockGroups = 8

// groups returns b's bytes as whole groups. The rest is left out.
func groups(b []byte) []group {
	return unsafe.Slice((*group)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/groupBytes)
}

func (g *group) word(i int) uint64 { return binary.LittleEndian.Uint64(g[8*i:]) }

// positional counts bits by field with the Harley–Seal method. For each of the 64 bit positions, carry-save adders
// keep the number of seen bits modulo 16 in four words. Only the carry of every sixteenth word goes through a
// population count.
type positional struct {
	ones, twos, fours, eights uint64
	sixteens                  Fields
}

// csa is a carry-save (full) adder at each bit position: a+b+c = 2·carry+sum. The carry is b if b and c agree, else
// a. This needs one register copy; the usual a&b|(a^b)&c needs two.
func csa(a, b, c uint64) (carry, sum uint64) {
	differ := b ^ c
	return b ^ differ&(b^a), differ ^ a
}

// addXor counts the bits in which a and b differ. Both have the same number of groups, at most blockGroups.
func (p *positional) addXor(l *lanes, a, b []group) {
	var carries [blockGroups]uint64
	out := carries[:len(a)]
	b = b[:len(a)]
	ones, twos, fours, eights := p.ones, p.twos, p.fours, p.eights
	var twoA, twoB, fourA, fourB, eightA, eightB uint64
	for i := range a {
		x, y := &a[i], &b[i]
		twoA, ones = csa(ones, x.word(0)^y.word(0), x.word(1)^y.word(1))
		twoB, ones = csa(ones, x.word(2)^y.word(2), x.word(3)^y.word(3))
		fourA, twos = csa(twos, twoA, twoB)
		twoA, ones = csa(ones, x.word(4)^y.word(4), x.word(5)^y.word(5))
		twoB, ones = csa(ones, x.word(6)^y.word(6), x.word(7)^y.word(7))
		fourB, twos = csa(twos, twoA, twoB)
		eightA, fours = csa(fours, fourA, fourB)
		twoA, ones = csa(ones, x.word(8)^y.word(8), x.word(9)^y.word(9))
		twoB, ones = csa(ones, x.word(10)^y.word(10), x.word(11)^y.word(11))
		fourA, twos = csa(twos, twoA, twoB)
		twoA, ones = csa(ones, x.word(12)^y.word(12), x.word(13)^y.word(13))
		twoB, ones = csa(ones, x.word(14)^y.word(14), x.word(15)^y.word(15))
		fourB, twos = csa(twos, twoA, twoB)
		eightB, fours = csa(fours, fourA, fourB)
		out[i], eights = csa(eights, eightA, eightB)
	}
	p.ones, p.twos, p.fours, p.eights = ones, twos, fours, eights
	p.sixteens.add(l.count(out))
}

// addOnes counts the set bits in a, which has at most blockGroups groups. It returns a mask of the groups that may
// have special values: those that are not ordinary in the sense of lanes.
func (p *positional) addOnes(l *lanes, a []group) (special uint64) {
	var carries [blockGroups]uint64
	out := carries[:len(a)]
	ones, twos, fours, eights := p.ones, p.twos, p.fours, p.eights
	var twoA, twoB, fourA, fourB, eightA, eightB uint64
	for i := range a {
		x := &a[i]
		all, any := ^uint64(0), uint64(0)
		v, w := x.word(0), x.word(1)
		all, any = all&v&w, any|v|w
		twoA, ones = csa(ones, v, w)
		v, w = x.word(2), x.word(3)
		all, any = all&v&w, any|v|w
		twoB, ones = csa(ones, v, w)
		fourA, twos = csa(twos, twoA, twoB)
		v, w = x.word(4), x.word(5)
		all, any = all&v&w, any|v|w
		twoA, ones = csa(ones, v, w)
		v, w = x.word(6), x.word(7)
		all, any = all&v&w, any|v|w
		twoB, ones = csa(ones, v, w)
		fourB, twos = csa(twos, twoA, twoB)
		eightA, fours = csa(fours, fourA, fourB)
		v, w = x.word(8), x.word(9)
		all, any = all&v&w, any|v|w
		twoA, ones = csa(ones, v, w)
		v, w = x.word(10), x.word(11)
		all, any = all&v&w, any|v|w
		twoB, ones = csa(ones, v, w)
		fourA, twos = csa(twos, twoA, twoB)
		v, w = x.word(12), x.word(13)
		all, any = all&v&w, any|v|w
		twoA, ones = csa(ones, v, w)
		v, w = x.word(14), x.word(15)
		all, any = all&v&w, any|v|w
		twoB, ones = csa(ones, v, w)
		fourB, twos = csa(twos, twoA, twoB)
		eightB, fours = csa(fours, fourA, fourB)
		out[i], eights = csa(eights, eightA, eightB)
		if all&l.ordinaryOnes != l.ordinaryOnes || any&l.ordinaryZeros != 0 {
			special |= 1 << i
		}
	}
	p.ones, p.twos, p.fours, p.eights = ones, twos, fours, eights
	p.sixteens.add(l.count(out))
	return special
}

// total returns all bits counted so far.
func (p *positional) total(l *lanes) Fields {
	f := p.sixteens.times(16)
	for i, w := range [4]uint64{p.ones, p.twos, p.fours, p.eights} {
		f.add(l.count([]uint64{w}).times(1 << i))
	}
	return f
}

// count returns the set bits in words, by field.
func (l *lanes) count(words []uint64) Fields {
	var all, sign, exp int
	for _, w := range words {
		all += bits.OnesCount64(w)
		sign += bits.OnesCount64(w & l.sign)
		exp += bits.OnesCount64(w & l.exp)
	}
	return Fields{uint64(sign), uint64(exp), uint64(all - sign - exp)}
}
