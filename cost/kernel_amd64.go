//go:build !purego

package cost

import "golang.org/x/sys/cpu"

//go:generate go run -C _gen . -out ../kernel_amd64.s -stubs ../kernel_stub_amd64.go -pkg cost

// haveAVX512 selects the kernel or plain Go. Package cpu reports no AVX-512 if the operating system does not save the
// wide registers.
var haveAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VPOPCNTDQ

// A block is the kernel's unit. One function of the kernel reads a chunk before the next function reads the same
// chunk, so that the chunk is still in the nearest cache.
const (
	blockBytes  = 1024
	chunkBlocks = 8
)

// addBlocks is addPlain for the whole blocks at the start of cur. It returns the number of counted bytes, which is 0
// on a machine without AVX-512.
func (t *tally) addBlocks(l *lanes, cur, before, above []byte) int {
	blocks := len(cur) / blockBytes
	if !haveAVX512 || blocks == 0 {
		return 0
	}
	// An element without a neighbour is compared with itself, so nothing toggles.
	b, a := before, above
	if before == nil {
		b = cur
	}
	if above == nil {
		a = cur
	}
	k := kernel512{masks: l.masks512()}
	for i := 0; i < blocks; i += chunkBlocks {
		at := i * blockBytes
		k.addChunk(l.size, cur[at:], b[at:], a[at:], min(chunkBlocks, blocks-i))
	}
	t.ones.add(total512(l, &k.ones))
	t.memory.add(total512(l, &k.memory))
	t.rows.add(total512(l, &k.rows))
	t.addSpecials512(&k.specials, before != nil, above != nil)
	return blocks * blockBytes
}

// kernel512 holds the kernel's counts.
type kernel512 struct {
	ones, memory, rows positional512
	specials           specials512
	masks              [9]uint64
}

// positional512 is eight positional counters side by side: ones, twos, fours and eights, then the numbers of sixteens
// in the sign, in the exponent and in all fields.
type positional512 = [7][8]uint64

// specials512 are numbers of elements: zeros, zeros preceded by a zero, zeros below a zero, zeros and subnormal
// numbers, values that are not finite, NaN.
type specials512 = [6]uint64

// addChunk counts at most chunkBlocks blocks of elements of the given size.
func (k *kernel512) addChunk(size int, cur, before, above []byte, blocks int) {
	var special [chunkBlocks]uint16
	addOnes512(&k.ones, &cur[0], &special[0], blocks, &k.masks)
	addXor512(&k.memory, &cur[0], &before[0], blocks, &k.masks)
	addXor512(&k.rows, &cur[0], &above[0], blocks, &k.masks)
	for i, found := range special {
		if found == 0 {
			continue
		}
		at := i * blockBytes
		c, b, a := &cur[at], &before[at], &above[at]
		switch size {
		case 1:
			addSpecials8(&k.specials, c, b, a, 1, &k.masks)
		case 2:
			addSpecials16(&k.specials, c, b, a, 1, &k.masks)
		default:
			addSpecials32(&k.specials, c, b, a, 1, &k.masks)
		}
	}
}

// addSpecials512 adds pairs of zeros only if the elements have such neighbours.
func (t *tally) addSpecials512(s *specials512, hasBefore, hasAbove bool) {
	zeros, zerosBefore, zerosAbove, notNormal, notFinite, nan := s[0], s[1], s[2], s[3], s[4], s[5]
	t.zeros += zeros
	if hasBefore {
		t.zerosBefore += zerosBefore
	}
	if hasAbove {
		t.zerosAbove += zerosAbove
	}
	t.subnormal += notNormal - zeros
	t.inf += notFinite - nan
	t.nan += nan
}

// masks512 returns the kernel's masks, in the kernel's order.
func (l *lanes) masks512() [9]uint64 {
	return [9]uint64{
		l.sign, l.exp, l.ordinaryOnes, l.ordinaryZeros,
		l.magnitude | l.valueSign, // no bit set: zero
		l.magnitude,
		l.normal | l.valueSign,     // no bit set: zero or subnormal
		l.magnitude - l.finiteRoom, // the largest finite magnitude
		l.magnitude - l.nanRoom,    // the largest magnitude that is not NaN
	}
}

// total512 returns the sum of a counter.
func total512(l *lanes, p *positional512) Fields {
	var sixteens [3]uint64
	for i := range sixteens {
		for _, n := range p[4+i] {
			sixteens[i] += n
		}
	}
	sign, exp, all := sixteens[0], sixteens[1], sixteens[2]
	f := Fields{sign, exp, all - sign - exp}.times(16)
	for i := range 4 {
		f.add(l.count(p[i][:]).times(1 << i))
	}
	return f
}
