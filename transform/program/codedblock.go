package program

import (
	"context"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// codedBlock is some rows of an expert's result that share no scales with other rows. All scales are chosen; codes
// are chosen only for requested rows.
type codedBlock struct {
	expert, first int

	mu       sync.Mutex
	recoder  *recoder
	from, to int // rows with codes
}

// mostLast is the largest number of codes in the kept blocks, which hold the rows of a sample. A single larger block
// is kept too.
const mostLast = 8 << 20

// block returns the block of rows [first, first+n) of an expert, or a larger kept block that contains these rows.
func (c *coded) block(p *Program, expert, first, n int) *codedBlock {
	c.mu.Lock()
	for _, b := range c.last {
		if b.expert == expert && b.first <= first && first+n <= b.first+b.recoder.out.N {
			c.mu.Unlock()
			return b
		}
	}
	c.mu.Unlock()
	b := &codedBlock{expert: expert, first: first, recoder: p.rowsRecoder(expert, first, n)}
	b.recoder.out.Codes = takeCodes(n * p.Cols)
	c.mu.Lock()
	c.last = append(c.last, b)
	for len(c.last) > 1 && len(c.last)*n*p.Cols > mostLast {
		c.last = c.last[1:]
	}
	c.mu.Unlock()
	return b
}

// freeCodes holds unused memory for codes. A plan reads some rows of many weights, one weight after the other.
var freeCodes sync.Pool // of *[]byte

func takeCodes(n int) []byte {
	if b, ok := freeCodes.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n)
}

// free releases the block. No matrix of the block may be in use.
func (b *codedBlock) free() {
	codes := b.recoder.out.Codes
	freeCodes.Put(&codes)
}

// matrix returns the block with the codes of rows [from, to).
func (b *codedBlock) matrix(from, to int) *quant.Matrix {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from == b.to {
		b.from, b.to = from, from
	}
	b.choose(min(from, b.from), b.from)
	b.choose(b.to, max(to, b.to))
	b.from, b.to = min(from, b.from), max(to, b.to)
	return b.recoder.out
}

// choose chooses the codes of rows [from, to).
func (b *codedBlock) choose(from, to int) {
	if from < to {
		if err := b.recoder.chooseAlone(context.Background(), from, to, 1); err != nil {
			panic(err)
		}
	}
}
