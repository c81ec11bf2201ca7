package codebytes

import "encoding/binary"

var little = binary.LittleEndian

// Spread unpacks 4-bit codes to one byte each, the low half of a byte first. src has at least as many codes as dst
// has bytes. The number of codes must be a multiple of 8.
func Spread(dst, src []byte) {
	n := spreadVectors(dst, src[:len(dst)/2])
	for dst, src = dst[n:], src[n/2:]; len(dst) >= 8; dst, src = dst[8:], src[4:] {
		little.PutUint64(dst, SpreadWord(little.Uint32(src)))
	}
}

// Gather is the inverse of Spread. It packs codes, and reports whether all are below 16. It prefetches the codes of a
// later call, ahead bytes after src; an ahead of 0 prefetches nothing.
func Gather(dst, src []byte, ahead int) bool {
	n, ok := gatherVectors(dst[:len(src)/2], src, ahead)
	var all uint64
	for dst, src = dst[n/2:], src[n:]; len(src) >= 8; dst, src = dst[4:], src[8:] {
		x := little.Uint64(src)
		all |= x
		little.PutUint32(dst, GatherWord(x))
	}
	return ok && all&aboveHalf == 0
}

// aboveHalf has the bits that are 0 in all 4-bit codes.
const aboveHalf = 0xF0F0F0F0F0F0F0F0

// SpreadWord unpacks the eight codes of a word.
func SpreadWord(word uint32) uint64 {
	x := uint64(word)
	x = (x | x<<16) & 0x0000FFFF0000FFFF
	x = (x | x<<8) & 0x00FF00FF00FF00FF
	return (x | x<<4) & 0x0F0F0F0F0F0F0F0F
}

// GatherWord is the inverse of SpreadWord.
func GatherWord(x uint64) uint32 {
	x = (x | x>>4) & 0x00FF00FF00FF00FF
	x = (x | x>>8) & 0x0000FFFF0000FFFF
	return uint32(x | x>>16)
}
