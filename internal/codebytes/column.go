package codebytes

// Transpose transposes a matrix of 32-bit words: word c of row r becomes word r of row c. Rows are from bytes apart
// in src, and to bytes apart in dst.
func Transpose(dst, src []byte, to, from, rows, cols int) {
	for r := 0; r < rows; r += 16 {
		n := min(16, rows-r)
		c := 0
		if n == 16 {
			_, _ = src[(r+15)*from+4*cols-1], dst[(cols-1)*to+4*r+63]
			c = transposeVectors(dst[4*r:], src[r*from:], to, from, cols)
		}
		for ; c < cols; c++ {
			for i := r; i < r+n; i++ {
				copy(dst[c*to+4*i:][:4], src[i*from+4*c:][:4])
			}
		}
	}
}

// columnWords is the number of words of a column that are unpacked at a time.
const columnWords = 64

// columnPlaces are the bytes of [SpreadWord] that hold the codes of eight neighbouring rows. From the lowest bits of
// a word on, AWQ stores the rows 0, 2, 4, 6, 1, 3, 5, 7.
var columnPlaces = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// SpreadColumn unpacks words of eight 4-bit codes to eight rows in AWQ's order. The rows are stride bytes apart. Word
// i has the codes i of the rows.
func SpreadColumn(dst, words []byte, stride int) {
	n := len(words) / 4
	_ = dst[7*stride+n-1]
	i := 0
	for ; i+columnWords <= n && spreadColumnVectors(dst[i:], words[4*i:], stride); i += columnWords {
	}
	for ; i < n; i += 8 {
		var x [8]uint64
		m := min(8, n-i)
		for l := range m {
			x[l] = SpreadWord(little.Uint32(words[4*(i+l):]))
		}
		transpose8(&x)
		for row, place := range columnPlaces {
			to := dst[row*stride+i:]
			if m == 8 {
				little.PutUint64(to, x[place])
				continue
			}
			for l := range m {
				to[l] = byte(x[place] >> (8 * l))
			}
		}
	}
}

// GatherColumn is the inverse of SpreadColumn. It reports whether all codes are below 16.
func GatherColumn(words, src []byte, stride int) bool {
	n := len(words) / 4
	_ = src[7*stride+n-1]
	i, ok := 0, true
	for ; i+columnWords <= n; i += columnWords {
		done, below := gatherColumnVectors(words[4*i:], src[i:], stride)
		if !done {
			break
		}
		ok = ok && below
	}
	for ; i < n; i += 8 {
		var x [8]uint64
		m := min(8, n-i)
		for row, place := range columnPlaces {
			from := src[row*stride+i:]
			if m == 8 {
				x[place] = little.Uint64(from)
			} else {
				for l := range m {
					x[place] |= uint64(from[l]) << (8 * l)
				}
			}
			ok = ok && x[place]&aboveHalf == 0
		}
		transpose8(&x)
		for l := range m {
			little.PutUint32(words[4*(i+l):], GatherWord(x[l]))
		}
	}
	return ok
}

// transpose8 transposes a matrix of 8 × 8 bytes. Byte i of a row has the bits from 8·i on.
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
