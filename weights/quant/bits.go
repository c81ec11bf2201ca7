package quant

import (
	"encoding/binary"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/codebytes"
)

var little = binary.LittleEndian

// unpackBits unpacks a stream of codes that begins with the lowest bit of data. data ends with the last code's 32-bit word.
func unpackBits(dst, data []byte, bits int) {
	switch bits {
	case 8:
		copy(dst, data)
		return
	case 4:
		n := len(dst) &^ 7
		codebytes.Spread(dst[:n], data)
		dst, data = dst[n:], data[n/2:]
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

// packBits is the inverse of unpackBits. Bits behind the last code are 0. ahead is that of [codebytes.Gather].
func packBits(dst, codes []byte, bits, ahead int) {
	switch bits {
	case 8:
		clear(dst[copy(dst, codes):])
		return
	case 4:
		n := len(codes) &^ 7
		codebytes.Gather(dst, codes[:n], ahead)
		dst, codes = dst[n/2:], codes[n:]
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

// tile is a part of a matrix of words that is copied at a time, because words of one column lie far apart. 32 codes fill a multiple of
// whole words.
const (
	tileRows    = 24
	tileColumns = 64
)

type tile [4 * tileRows * tileColumns]byte

// load copies columns [first, first+n) of rows of a matrix of words with width columns.
func (t *tile) load(data []byte, width, first, n, rows int) {
	for i := range rows {
		copy(t[4*tileColumns*i:4*tileColumns*i+4*n], data[4*(i*width+first):])
	}
}

// store is the inverse of load.
func (t *tile) store(data []byte, width, first, n, rows int) {
	for i := range rows {
		copy(data[4*(i*width+first):], t[4*tileColumns*i:4*tileColumns*i+4*n])
	}
}

func (t *tile) word(i, c int) uint32 {
	at := 4 * (tileColumns*i + c)
	return little.Uint32(t[at : at+4])
}

func (t *tile) setWord(i, c int, word uint32) {
	at := 4 * (tileColumns*i + c)
	little.PutUint32(t[at:at+4], word)
}

// unpackColumns unpacks the columns [first, first+n) of words, which lie in rows of width words: each column is a stream of
// k codes. Row i of dst gets the codes of column first+i.
func unpackColumns(dst, data []byte, width, first, n, k, bits int) {
	var t tile
	var column [4 * tileRows]byte
	for j := 0; j < k*bits/32; j += tileRows {
		rows := min(tileRows, k*bits/32-j)
		at, codes := j*32/bits, rows*32/bits
		for c0 := 0; c0 < n; c0 += tileColumns { // neighbours in memory
			columns := min(tileColumns, n-c0)
			t.load(data[4*j*width:], width, first+c0, columns, rows)
			for c := range columns {
				for i := range rows {
					little.PutUint32(column[4*i:4*i+4], t.word(i, c))
				}
				unpackBits(dst[(c0+c)*k+at:][:codes], column[:4*rows], bits)
			}
		}
	}
}

// packColumns packs rows of k codes into word rows [j, j+count) of columns: row c becomes column c. j and count are
// multiples of bits where codes do not fill single words.
func packColumns(dst, codes []byte, width, k, bits, j, count int) {
	var t tile
	var column [4 * tileRows]byte
	for c0 := 0; c0 < width; c0 += tileColumns {
		columns := min(tileColumns, width-c0)
		for j0 := 0; j0 < count; j0 += tileRows {
			rows := min(tileRows, count-j0)
			at, n := (j+j0)*32/bits, rows*32/bits
			for c := range columns {
				from := codes[(c0+c)*k+at:][:n]
				packBits(column[:4*rows], from, bits, 8*k)
				for i := range rows {
					t.setWord(i, c, little.Uint32(column[4*i:4*i+4]))
				}
			}
			t.store(dst[4*j0*width:], width, c0, columns, rows)
		}
	}
}

// awqPlaces are the bytes of [codebytes.SpreadWord] that hold the codes of eight neighbouring outputs. AWQ stores outputs 0, 2, 4, 6, 1,
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
	var t tile
	end := ceil(first+n, 8)
	for j0 := first / 8; j0 < end; j0 += tileColumns {
		columns := min(tileColumns, end-j0)
		for k0 := 0; k0 < k; k0 += tileRows {
			rows := min(tileRows, k-k0)
			t.load(data[k0*outputs/2:], outputs/8, j0, columns, rows)
			for j := range columns {
				for i := 0; i < rows; i += 8 {
					t.unpack8(dst, 8*(j0+j)-first, n, k, k0+i, i, j, min(8, rows-i))
				}
			}
		}
	}
}

// unpack8 unpacks words [i, i+inputs) of column j of the tile. Code o of a word goes to row first+o of dst, if there is such
// a row below n, at place k0 of k.
func (t *tile) unpack8(dst []byte, first, n, k, k0, i, j, inputs int) {
	var x [8]uint64
	for l := range inputs {
		x[l] = codebytes.SpreadWord(t.word(i+l, j))
	}
	transpose8(&x)
	for o, place := range awqPlaces {
		row := first + o
		if row < 0 || row >= n {
			continue
		}
		if inputs == 8 {
			little.PutUint64(dst[row*k+k0:], x[place])
			continue
		}
		for l := range inputs {
			dst[row*k+k0+l] = byte(x[place] >> (8 * l))
		}
	}
}

// packAWQ packs inputs [k0, k0+inputs) of rows of k codes into AWQ's words [inputs, outputs/8].
func packAWQ(dst, codes []byte, outputs, k, k0, inputs int) {
	var t tile
	for j0 := 0; j0 < outputs/8; j0 += tileColumns {
		columns := min(tileColumns, outputs/8-j0)
		for i0 := 0; i0 < inputs; i0 += tileRows {
			rows := min(tileRows, inputs-i0)
			for j := range columns {
				for i := 0; i < rows; i += 8 {
					t.pack8(codes[8*(j0+j)*k:], k, k0+i0+i, i, j, min(8, rows-i))
				}
			}
			t.store(dst[i0*outputs/2:], outputs/8, j0, columns, rows)
		}
	}
}

// pack8 is the inverse of unpack8, for the eight rows at the beginning of codes.
func (t *tile) pack8(codes []byte, k, k0, i, j, inputs int) {
	var x [8]uint64
	for o, place := range awqPlaces {
		at := o*k + k0
		if inputs == 8 {
			x[place] = little.Uint64(codes[at:])
			continue
		}
		for l := range inputs {
			x[place] |= uint64(codes[at+l]) << (8 * l)
		}
	}
	transpose8(&x)
	for l := range inputs {
		t.setWord(i+l, j, codebytes.GatherWord(x[l]))
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
	word, shift := 4*(i*bits/32)*stride, i*bits%32
	little.PutUint32(data[word:], little.Uint32(data[word:])|uint32(code)<<shift)
	if shift+bits > 32 {
		word += 4 * stride
		little.PutUint32(data[word:], little.Uint32(data[word:])|uint32(code)>>(32-shift))
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

// below reports whether all codes are below a power of two.
func below(codes []byte, limit int) bool {
	if limit > math.MaxUint8 {
		return true
	}
	n := len(codes) / 8 * 8
	var all uint64
	for i := 0; i < n; i += 8 {
		all |= little.Uint64(codes[i : i+8])
	}
	for _, c := range codes[n:] {
		all |= uint64(c)
	}
	high := uint64(byte(-limit)) // the bits of a byte that no code has
	return all&(high*0x0101010101010101) == 0
}
