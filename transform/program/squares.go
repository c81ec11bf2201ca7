package program

import (
	"github.com/lowtoggle/lowtoggle/internal/codebytes"
)

// squares sums the squares of FP8 codes without counting the codes. All partial sums are exact, so the sums equal
// those of [recodeWorker.sample].
type squares struct {
	table *codebytes.Table // squares in units of the smallest code's square; a highest byte of 1 marks codes without a square
	unit  float64          // square of the smallest code
	most  int              // largest number of codes to add
}

const (
	squareBytes = codebytes.Planes - 1
	exact       = 1 << 53 // smaller integers are exact in float64
)

// newSquares returns the squares of a book's values. If they cannot be added exactly, its table is nil.
func newSquares(values []float32) *squares {
	if len(values) != 256 {
		return &squares{}
	}
	var numbers [128]uint64
	smallest, largest := float64(values[1]), 0.0
	for c := range numbers {
		v, negative := float64(values[c]), float64(values[c+128])
		switch n := v / smallest; {
		case v != -negative && (v == v || negative == negative), n*n >= 1<<(8*squareBytes):
			return &squares{}
		case v != v:
			numbers[c] = 1 << (8 * squareBytes)
		default:
			numbers[c] = uint64(n * n)
			largest = max(largest, n*n)
		}
	}
	return &squares{codebytes.NewTable(&numbers), smallest * smallest, int(exact / largest)}
}

// addSquares adds the squares of the codes in rows [first, last) and group g. ok is false if [recodeWorker.sample] must count
// the codes instead.
func (w *recodeWorker) addSquares(first, last, g int) (ok bool) {
	if w.squareTable == nil {
		w.squareTable = newSquares(w.src.Book.Values)
	}
	t := w.squareTable
	if t.table == nil || w.target != nil || w.src.Group != nil {
		return false
	}
	b := w.blockOf(first, last, g)
	if b.Rows*b.Cols > t.most {
		return false
	}
	sums := t.table.Add(b)
	var sum uint64
	for p, n := range sums[:squareBytes] {
		sum += n << (8 * p)
	}
	w.squares, w.counted = float64(sum)*t.unit, float64(uint64(b.Rows*b.Cols)-sums[squareBytes])
	return true
}
