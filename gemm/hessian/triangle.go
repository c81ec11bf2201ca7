package hessian

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// stripeRows is the height of a stripe. At this height the product takes longer than packing its operand, and few elements below
// the diagonal of a wide layer are wasted.
const stripeRows = 256

// triangle adds up the upper triangle of XᵀX, in stripes of rows.
type triangle struct {
	width   int
	stripes [][]float64 // [rows of the stripe, width - its first row], dense
	product []float32   // product of a batch for a stripe
}

func newTriangle(width int) *triangle {
	t := &triangle{width: width, product: make([]float32, min(stripeRows, width)*width)}
	for from := 0; from < width; from += stripeRows {
		t.stripes = append(t.stripes, make([]float64, min(stripeRows, width-from)*(width-from)))
	}
	return t
}

// add adds xᵀx for a batch x[tokens, width].
func (t *triangle) add(ctx context.Context, x sgemm.Matrix, workers int) error {
	for i, sums := range t.stripes {
		from := i * stripeRows
		rows, cols := min(stripeRows, t.width-from), t.width-from
		p := sgemm.Dense(rows, cols, t.product[:rows*cols])
		a, b := x.Slice(0, x.Rows, from, from+rows), x.Slice(0, x.Rows, from, t.width)
		if err := sgemm.Mul(ctx, p, a, b, sgemm.Op{TransA: true, Workers: workers}); err != nil {
			return err
		}
		parallel.Do(rows, workers, func(r int) {
			sum := sums[r*cols:][:cols]
			for j, v := range p.Row(r) {
				sum[j] += float64(v)
			}
		})
	}
	return nil
}

// row returns the sums of row i from the diagonal on.
func (t *triangle) row(i int) []float64 {
	stripe, r := i/stripeRows, i%stripeRows
	cols := t.width - stripe*stripeRows
	return t.stripes[stripe][r*cols+r : (r+1)*cols]
}

// trace returns the sum of the diagonal.
func (t *triangle) trace() (sum float64) {
	for i := range t.width {
		sum += t.row(i)[0]
	}
	return sum
}

// mirror copies the upper triangle of a square matrix to the lower one, in blocks, so that the columns
// being written stay in the cache.
func mirror(h sgemm.Matrix) {
	const block = 64
	for i0 := 0; i0 < h.Rows; i0 += block {
		for j0 := i0; j0 < h.Cols; j0 += block {
			for i := i0; i < min(h.Rows, i0+block); i++ {
				row := h.Row(i)
				for j := max(j0, i+1); j < min(h.Cols, j0+block); j++ {
					h.Data[j*h.Stride+i] = row[j]
				}
			}
		}
	}
}
