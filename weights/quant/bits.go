package quant

import (
	"encoding/binary"
)

var little = binary.LittleEndian

// spread4 puts the eight 4-bit codes of a word into one byte each, the lowest first.
func spread4(word uint32) uint64 {
	x := uint64(word)
	x = (x | x<<16) & 0x0000FFFF0000FFFF
	x = (x | x<<8) & 0x00FF00FF00FF00FF
	return (x | x<<4) & 0x0F0F0F0F0F0F0F0F
}

// gather4 is the inverse of spread4.
func gather4(x uint64) uint32 {
	x = (x | x>>4) & 0x00FF00FF00FF00FF
	x = (x | x>>8) & 0x0000FFFF0000FFFF
	return uint32(x | x>>16)
}

// unpackBits unpacks a stream of codes that begins with the lowest bit of data. data ends with the last code's 32-bit word.
func unpackBits(dst, data []byte, bits int) {
	switch bits {
	case 8:
		copy(dst, data)
		return
	case 4:
		n := len(dst) / 8
		for i := range n {
			little.PutUint64(dst[8*i:8*i+8], spread4(little.Uint32(data[4*i:4*i+4])))
		}
		dst, data = dst[8*n:], data[4*n:]
	}
	var held uint64
	have, mask := 0, uint64(1)<<bits-1
	for i := range dst {
		if have < bits {
			held |= uint64(little.Uint32(data)) << have
			data, have = data[4:], have+32
		}
		dst[i] = byte(held & mask)
		held, have = held>>bits, have-bits
	}
}

// packBits is the inverse of unpackBits. Bits behind the last code are 0.
func packBits(dst, codes []byte, bits int) {
	switch bits {
	case 8:
		clear(dst[copy(dst, codes):])
		return
	case 4:
		n := len(codes) / 8
		for i := range n {
			little.PutUint32(dst[4*i:4*i+4], gather4(little.Uint64(codes[8*i:8*i+8])))
		}
		dst, codes = dst[4*n:], codes[8*n:]
	}
	var held uint64
	have := 0
	for _, c := range codes {
		held |= uint64(c) << have
		if have += bits; have >= 32 {
			little.PutUint32(dst, uint32(held))
			dst, held, have = dst[4:], held>>32, have-32
		}
	}
	if have > 0 {
		little.PutUint32(dst, uint32(held))
	}
}

// keepRest takes the bits of a word above the used ones from the source's word. There is no source where it is empty.
func keepRest(word, source []byte, used int) {
	if used != 0 && len(source) > 0 {
		kept := little.Uint32(source) &^ (1<<used - 1)
		little.PutUint32(word, little.Uint32(word)|kept)
	}
}

// columnWords is how many words of a column are packed or unpacked at a time. 32 codes fill a multiple of whole words.
const columnWords = 24

// unpackColumns unpacks the columns [first, first+n) of words, which lie in rows of width words: each column is a stream of
// k codes. Row i of dst gets the codes of column first+i.
func unpackColumns(dst, data []byte, width, first, n, k, bits int) {
	words := k * bits / 32
	var column [4 * columnWords]byte
	for j := 0; j < words; j += columnWords {
		count := min(columnWords, words-j)
		at, codes := j*32/bits, count*32/bits
		for c := range n {
			from := 4 * (j*width + first + c)
			to := dst[c*k+at : c*k+at+codes]
			if bits == 4 {
				for i := range count {
					little.PutUint64(to[8*i:8*i+8], spread4(little.Uint32(data[from:])))
					from += 4 * width
				}
				continue
			}
			for i := range count {
				copy(column[4*i:4*i+4], data[from:from+4])
				from += 4 * width
			}
			unpackBits(to, column[:4*count], bits)
		}
	}
}

// packColumns packs rows of k codes into word rows [j, j+count) of columns: row c becomes column c. j and count are
// multiples of bits where codes do not fill single words.
func packColumns(dst, codes []byte, width, k, bits, j, count int) {
	var column [4 * columnWords]byte
	for j0 := 0; j0 < count; j0 += columnWords {
		some := min(columnWords, count-j0)
		at, n := (j+j0)*32/bits, some*32/bits
		for c := range width {
			from, to := codes[c*k+at:c*k+at+n], 4*(j0*width+c)
			if bits == 4 {
				for i := range some {
					little.PutUint32(dst[to:], gather4(little.Uint64(from[8*i:8*i+8])))
					to += 4 * width
				}
				continue
			}
			packBits(column[:4*some], from, bits)
			for i := range some {
				copy(dst[to:to+4], column[4*i:4*i+4])
				to += 4 * width
			}
		}
	}
}

// awqPlaces are the bytes of spread4 that hold the codes of eight neighbouring outputs. AWQ stores outputs 0, 2, 4, 6, 1,
// 3, 5, 7 from the lowest bits of a word on.
var awqPlaces = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// transpose8 transposes a matrix of 8 × 8 bytes. Byte i of a row is its bits from 8·i on.
func transpose8(x *[8]uint64) {
	for i := range 4 {
		a, b := x[i], x[i+4]
		x[i], x[i+4] = a&0x00000000FFFFFFFF|b<<32, a>>32|b&0xFFFFFFFF00000000
	}
	for _, i := range [4]int{0, 1, 4, 5} {
		a, b := x[i], x[i+2]
		x[i], x[i+2] = a&0x0000FFFF0000FFFF|b<<16&0xFFFF0000FFFF0000, a>>16&0x0000FFFF0000FFFF|b&0xFFFF0000FFFF0000
	}
	for i := 0; i < 8; i += 2 {
		a, b := x[i], x[i+1]
		x[i], x[i+1] = a&0x00FF00FF00FF00FF|b<<8&0xFF00FF00FF00FF00, a>>8&0x00FF00FF00FF00FF|b&0xFF00FF00FF00FF00
	}
}

// unpackAWQ unpacks the outputs [first, first+n) of AWQ's words [k, outputs/8]. Row i of dst gets output first+i.
func unpackAWQ(dst, data []byte, outputs, first, n, k int) {
	width := outputs / 8
	for k0 := 0; k0 < k; k0 += 8 {
		inputs := min(8, k-k0)
		for j := first / 8; 8*j < first+n; j++ {
			var x [8]uint64
			for i := range inputs {
				x[i] = spread4(little.Uint32(data[4*((k0+i)*width+j):]))
			}
			transpose8(&x)
			for o, place := range awqPlaces {
				row := 8*j + o - first
				if row < 0 || row >= n {
					continue
				}
				if inputs == 8 {
					little.PutUint64(dst[row*k+k0:], x[place])
					continue
				}
				for i := range inputs {
					dst[row*k+k0+i] = byte(x[place] >> (8 * i))
				}
			}
		}
	}
}

// packAWQ packs inputs [k0, k0+inputs) of rows of k codes into AWQ's words [inputs, outputs/8].
func packAWQ(dst, codes []byte, outputs, k, k0, inputs int) {
	width := outputs / 8
	for ; inputs > 0; k0, inputs, dst = k0+8, inputs-8, dst[min(len(dst), 32*width):] {
		some := min(8, inputs)
		for j := range width {
			var x [8]uint64
			for o, place := range awqPlaces {
				at := (8*j+o)*k + k0
				if some == 8 {
					x[place] = little.Uint64(codes[at:])
					continue
				}
				for i := range some {
					x[place] |= uint64(codes[at+i]) << (8 * i)
				}
			}
			transpose8(&x)
			for i := range some {
				little.PutUint32(dst[4*(i*width+j):], gather4(x[i]))
			}
		}
	}
}

// bitsAt reads code i of a stream in words that lie stride words apart.
func bitsAt(data []byte, i, stride, bits int) byte {
	word, shift := i*bits/32, i*bits%32
	x := uint64(little.Uint32(data[4*word*stride:])) >> shift
	if shift+bits > 32 {
		x |= uint64(little.Uint32(data[4*(word+1)*stride:])) << (32 - shift)
	}
	return byte(x & (1<<bits - 1))
}

// setBitsAt writes a code into a stream whose bits are 0 there.
func setBitsAt(data []byte, i, stride, bits int, code byte) {
	word, shift := i*bits/32, i*bits%32
	or := func(word int, x uint32) {
		b := data[4*word*stride:]
		little.PutUint32(b, little.Uint32(b)|x)
	}
	or(word, uint32(code)<<shift)
	if shift+bits > 32 {
		or(word+1, uint32(code)>>(32-shift))
	}
}

// flipHighBits turns signed bytes into unsigned ones that are 128 higher, and back.
func flipHighBits(dst, data []byte) {
	n := len(data) / 8 * 8
	for i := 0; i < n; i += 8 {
		little.PutUint64(dst[i:i+8], little.Uint64(data[i:i+8])^0x8080808080808080)
	}
	for i := n; i < len(data); i++ {
		dst[i] = data[i] ^ 0x80
	}
}
