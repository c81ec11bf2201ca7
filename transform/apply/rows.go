package apply

import (
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// mostRows is the largest number of bytes of rows that a worker computes at a time.
const mostRows = inFlight / 4

// rowsOf returns the number of rows of codes that a worker computes at a time; 0 if a joint quantiser chooses all
// rows' codes together.
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

// codedRows are the rows of a weight, divided into the pieces that workers compute. The scales of a piece are chosen
// at the piece's first use, for its scales or for its codes.
type codedRows struct {
	pieces []*codedPiece
	kept   int // approximate bytes kept until codes and scales are written
}

type codedPiece struct {
	codes, scales int // bytes
	choose        func() *program.CodedRows
}

// Approximate bytes kept for a piece, and for each scale.
const (
	pieceBytes = 1024
	scaleBytes = 10
)

// cutRows divides a weight's rows into pieces of the given number of rows.
func cutRows(p *program.Program, rows int) *codedRows {
	q := p.Source.Quantised
	unit, perExpert := p.RowUnit(), p.Rows/max(1, q.Experts())
	codes, scales := q.RowSizes()
	stored, _ := q.Scales()
	scaleSize := stored.DType.Bits() / 8
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

// sendRows sends one tensor (codes or scales) of a weight whose rows share no scales. If the shard has both tensors,
// the scales are chosen once.
func (w *shardWriter) sendRows(p *program.Program, place quant.Place, rows int, send func(*chunk) error) error {
	q := place.Weight.Quantised
	scales, _ := q.Scales()
	c := w.rows[place.Weight]
	if c != nil {
		delete(w.rows, place.Weight)
		w.kept -= c.kept
	} else if c = cutRows(p, rows); w.kept+c.kept <= mostKept && q.Tensors[0].Shard == scales.Shard {
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
