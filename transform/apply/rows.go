package apply

import (
	"slices"
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// mostRows bounds the bytes of rows that share scales, and that one worker computes.
const mostRows = inFlight / 4

// rowsOf is how many rows of codes a worker computes at a time; 0 where the codes of all rows are chosen together.
func rowsOf(p *program.Program, place quant.Place) int {
	unit := p.RowUnit()
	if unit == 0 {
		return 0
	}
	size, _ := place.Weight.Quantised.RowSizes()
	if size == 0 || unit*size > mostRows {
		return 0
	}
	return max(1, chunkBytes/(unit*size)) * unit
}

// codedRows are the rows of a weight in the pieces in which workers compute them. Whoever first needs a piece, for its scales or
// for its codes, chooses the scales.
type codedRows struct {
	pieces []*codedPiece
	kept   int // about how many bytes are kept until both are written
}

type codedPiece struct {
	codes, scales int // bytes
	choose        func() *program.CodedRows
}

// About how many bytes are kept: of a piece, and of each scale.
const (
	pieceBytes = 1024
	scaleBytes = 10
)

// cutRows divides a weight's rows into pieces of so many rows.
func cutRows(p *program.Program, rows int) *codedRows {
	q := p.Source.Quantised
	unit, perExpert := p.RowUnit(), p.Rows/max(1, q.Experts())
	codes, scales := q.RowSizes()
	scaleSize := scalesOf(q).DType.Bits() / 8
	c := &codedRows{}
	for expert := range q.Experts() {
		for first := 0; first < perExpert && p.Cols > 0; first += rows {
			n := min(rows, perExpert-first)
			choose := sync.OnceValue(func() *program.CodedRows { return p.CodedRows(expert, first, n) })
			piece := &codedPiece{n * codes, (n + unit - 1) / unit * scales, choose}
			c.pieces = append(c.pieces, piece)
			c.kept += pieceBytes + scaleBytes*piece.scales/scaleSize
		}
	}
	return c
}

// sendRows sends one tensor, codes or scales, of a weight whose rows are chosen by themselves. If the shard holds both, the
// scales are chosen once.
func (w *shardWriter) sendRows(p *program.Program, place quant.Place, rows int, send func(*chunk) error) error {
	q := place.Weight.Quantised
	c := w.rows[place.Weight]
	if c != nil {
		delete(w.rows, place.Weight)
		w.kept -= c.kept
	} else if c = cutRows(p, rows); w.kept+c.kept <= mostKept && q.Tensors[0].Shard == scalesOf(q).Shard {
		if w.rows == nil {
			w.rows = map[*quant.Weight]*codedRows{}
		}
		w.rows[place.Weight] = c
		w.kept += c.kept
	}
	for _, piece := range c.pieces {
		next := newChunk(piece.codes, func(out []byte) ([]byte, error) { return out, piece.choose().StoreCodes(out) })
		if q.Tensors[place.Part].Role == quant.Scales {
			next = newChunk(piece.scales, func(out []byte) ([]byte, error) { return out, piece.choose().StoreScales(out) })
		}
		if err := send(next); err != nil {
			return err
		}
	}
	return nil
}

// scalesOf is the tensor of a weight's scales.
func scalesOf(q *quant.Quantised) quant.Stored {
	return q.Tensors[slices.IndexFunc(q.Tensors, func(t quant.Stored) bool { return t.Role == quant.Scales })]
}
