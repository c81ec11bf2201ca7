package program

import "github.com/lowtoggle/lowtoggle/weights"

// Block is the rows [First, First+Rows) of a weight's result, each of Cols elements. Data holds the rows as stored,
// one after the other.
type Block struct {
	First, Rows, Cols int
	Data              []byte
	Format            weights.Format
}

// RowBytes is the length of a row in bytes.
func (b Block) RowBytes() int { return b.Cols * b.Format.Bits / 8 }

// Op rewrites a block in place.
type Op func(b Block)
