package quant

import (
	"encoding/binary"

	"github.com/lowtoggle/lowtoggle/internal/codebytes"
)

var little = binary.LittleEndian

// unpackBits unpacks a stream of codes, which starts at the lowest bit of data. data ends with the last code's 32-bit word.
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

// packBits is the inverse of unpackBits, and reports whether all codes fit into that many bits. Bits after the last code are 0.
// ahead is passed to [codebytes.Gather].
func packBits(dst, codes []byte, bits, ahead int) bool {
	ok := true
	switch bits {
	case 8:
		clear(dst[copy(dst, codes):])
		return true
	case 4:
		n := len(codes) &^ 7
		ok = codebytes.Gather(dst, codes[:n], ahead)
		dst, codes = dst[n/2:], codes[n:]
	}
	var held uint64
	have, all := 0, byte(0)
	for _, c := range codes {
		all |= c
		held |= uint64(c) << have
		if have += bits; have >= 32 {
			little.PutUint32(dst, uint32(held))
			dst, held, have = dst[4:], held>>32, have-32
		}
	}
	if have > 0 {
		little.PutUint32(dst, uint32(held))
	}
	return ok && all>>bits == 0
}

// keepRest copies the unused bits of a word, those from bit used on, from the source's word. An empty source is ignored.
func keepRest(word, source []byte, used int) {
	if used != 0 && len(source) > 0 {
		kept := little.Uint32(source) &^ (1<<used - 1)
		little.PutUint32(word, little.Uint32(word)|kept)
	}
}

// Tile sizes of packing along columns. Words of one column lie far apart in memory, so tiles of the matrix of words are
// transposed. 32 codes fill a multiple of whole words.
const (
	tileColumns = 64
	tileRows    = 48
)

// unpackColumns unpacks the columns [first, first+n) of words, which lie in rows of width words: each column is a stream of
// k codes. Row i of dst gets the codes of column first+i.
func unpackColumns(dst, data []byte, width, first, n, k, bits int) {
	var tile [4 * tileRows * tileColumns]byte
	for j := 0; j < k*bits/32; j += tileRows {
		rows := min(tileRows, k*bits/32-j)
		at, codes := j*32/bits, rows*32/bits
		for c0 := 0; c0 < n; c0 += tileColumns { // neighbours in memory
			columns := min(tileColumns, n-c0)
			codebytes.Transpose(tile[:], data[4*(j*width+first+c0):], 4*tileRows, 4*width, rows, columns)
			for c := range columns {
				unpackBits(dst[(c0+c)*k+at:][:codes], tile[4*tileRows*c:][:4*rows], bits)
			}
		}
	}
}

// packColumns packs rows of k codes into word rows [j, j+count) of columns: row c becomes column c. j and count are multiples of
// bits if codes cross words. It reports whether all codes fit into that many bits.
func packColumns(dst, codes []byte, width, k, bits, j, count int) bool {
	var tile [4 * tileRows * tileColumns]byte
	ok := true
	for c0 := 0; c0 < width; c0 += tileColumns {
		columns := min(tileColumns, width-c0)
		for j0 := 0; j0 < count; j0 += tileRows {
			rows := min(tileRows, count-j0)
			at, n := (j+j0)*32/bits, rows*32/bits
			for c := range columns {
				from := codes[(c0+c)*k+at:][:n]
				ok = packBits(tile[4*tileRows*c:][:4*rows], from, bits, 8*k) && ok
			}
			codebytes.Transpose(dst[4*(j0*width+c0):], tile[:], 4*width, 4*tileRows, columns, rows)
		}
	}
	return ok
}

// Tile sizes of AWQ, in words of eight outputs and in inputs: the sizes that [codebytes.Transpose] and [codebytes.SpreadColumn]
// process at a time.
const (
	awqWords  = 16
	awqInputs = 64
)

// unpackAWQ unpacks the outputs [first, first+n) of AWQ's words [k, outputs/8]. Row i of dst gets output first+i.
func unpackAWQ(dst, data []byte, outputs, first, n, k int) {
	var tile [awqWords * 4 * awqInputs]byte
	var part [8 * awqInputs]byte
	end := ceil(first+n, 8)
	for k0 := 0; k0 < k; k0 += awqInputs {
		inputs := min(awqInputs, k-k0)
		for j0 := first / 8; j0 < end; j0 += awqWords {
			words := min(awqWords, end-j0)
			codebytes.Transpose(tile[:], data[k0*outputs/2+4*j0:], 4*awqInputs, outputs/2, inputs, words)
			for j := range words {
				row, column := 8*(j0+j)-first, tile[4*awqInputs*j:][:4*inputs]
				if row >= 0 && row+8 <= n {
					codebytes.SpreadColumn(dst[row*k+k0:], column, k)
					continue
				}
				codebytes.SpreadColumn(part[:], column, awqInputs)
				for o := max(0, -row); o < min(8, n-row); o++ {
					copy(dst[(row+o)*k+k0:], part[o*awqInputs:][:inputs])
				}
			}
		}
	}
}

// packAWQ packs inputs [k0, k0+inputs) of rows of k codes into AWQ's words [inputs, outputs/8]. It reports whether all codes are
// below 16.
func packAWQ(dst, codes []byte, outputs, k, k0, inputs int) bool {
	var tile [awqWords * 4 * awqInputs]byte
	ok := true
	for j0 := 0; j0 < outputs/8; j0 += awqWords {
		words := min(awqWords, outputs/8-j0)
		for i0 := 0; i0 < inputs; i0 += awqInputs {
			n := min(awqInputs, inputs-i0)
			for j := range words {
				ok = codebytes.GatherColumn(tile[4*awqInputs*j:][:4*n], codes[8*(j0+j)*k+k0+i0:], k) && ok
			}
			codebytes.Transpose(dst[i0*outputs/2+4*j0:], tile[:], outputs/2, 4*awqInputs, words, n)
		}
	}
	return ok
}

// bitsAt returns code i of a stream in words that are stride words apart.
func bitsAt(data []byte, i, stride, bits int) byte {
	word, shift := i*bits/32, i*bits%32
	x := uint64(little.Uint32(data[4*word*stride:])) >> shift
	if shift+bits > 32 {
		x |= uint64(little.Uint32(data[4*(word+1)*stride:])) << (32 - shift)
	}
	return byte(x & (1<<bits - 1))
}

// setBitsAt writes code i of a stream. The code's bits must be 0 before the call.
func setBitsAt(data []byte, i, stride, bits int, code byte) {
	word, shift := 4*(i*bits/32)*stride, i*bits%32
	little.PutUint32(data[word:], little.Uint32(data[word:])|uint32(code)<<shift)
	if shift+bits > 32 {
		word += 4 * stride
		little.PutUint32(data[word:], little.Uint32(data[word:])|uint32(code)>>(32-shift))
	}
}

// flipHighBits adds 128 to every byte, modulo 256: it converts signed codes to unsigned codes and back.
func flipHighBits(dst, data []byte) {
	n := len(data) / 8 * 8
	for i := 0; i < n; i += 8 {
		little.PutUint64(dst[i:i+8], little.Uint64(data[i:i+8])^0x8080808080808080)
	}
	for i := n; i < len(data); i++ {
		dst[i] = data[i] ^ 0x80
	}
}
