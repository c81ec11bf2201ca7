// Package codebytes translates, sums and packs one-byte codes. With AVX-512 it processes 64 codes at a time.
package codebytes

// Block is a part of a matrix of bytes. It has Rows rows of Cols bytes. The rows are Stride bytes apart. Data begins
// with the first byte.
type Block struct {
	Data               []byte
	Rows, Cols, Stride int
}

// span returns the number of bytes from the block's first byte to its last.
func (b Block) span() int { return max(0, (b.Rows-1)*b.Stride+b.Cols) }

// Translate writes the table's entry for each byte of src to dst, which has the same stride. dst may be src's data.
func Translate(dst []byte, src Block, table *[256]byte) {
	if src.Rows == 0 || src.Cols == 0 {
		return
	}
	src.Data, dst = src.Data[:src.span()], dst[:src.span()]
	if !translateVectors(dst, src, table) {
		translatePlain(dst, src, table)
	}
}

// translatePlain is the definition of Translate.
func translatePlain(dst []byte, src Block, table *[256]byte) {
	for at := 0; at < len(src.Data); at += src.Stride {
		from, to := src.Data[at:at+src.Cols], dst[at:at+src.Cols]
		for i, c := range from {
			to[i] = table[c]
		}
	}
}

// Planes is the number of bytes in a number of a [Table].
const Planes = 6

// Table has a number for each value of a byte's low seven bits. The highest bit of a floating-point code is the sign.
// The table has the lowest bytes of all numbers first, then the next bytes.
type Table [Planes][128]byte

// NewTable returns the table of some numbers, each below 2^48.
func NewTable(numbers *[128]uint64) *Table {
	t := new(Table)
	for c, n := range numbers {
		for p := range t {
			t[p][c] = byte(n >> (8 * p))
		}
	}
	return t
}

// Sums are the sums of each byte of the numbers, the lowest byte first.
type Sums [Planes]uint64

// Add returns the sums of the numbers of all bytes of b.
func (t *Table) Add(b Block) Sums {
	if b.Rows == 0 || b.Cols == 0 {
		return Sums{}
	}
	b.Data = b.Data[:b.span()]
	if sums, ok := t.addVectors(b); ok {
		return sums
	}
	return t.addPlain(b)
}

// addPlain is the definition of Add. It counts the bytes first, which needs one addition for a byte and not one for
// every plane.
func (t *Table) addPlain(b Block) (sums Sums) {
	var counts [128]uint64
	for at := 0; at < len(b.Data); at += b.Stride {
		for _, c := range b.Data[at : at+b.Cols] {
			counts[c&0x7F]++
		}
	}
	for c, n := range counts {
		if n > 0 {
			for p := range sums {
				sums[p] += n * uint64(t[p][c])
			}
		}
	}
	return sums
}
