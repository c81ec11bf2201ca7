package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/forward/vector"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// output is the last norm and the head, with buffers for their results.
type output struct {
	*pass
	decoder.Head
	norm   norm
	linear linear
	x      sgemm.Matrix // buffer for the largest batch
	logits sgemm.Matrix // buffer for a chunk of a batch
}

// chunkLogits limits the number of logits in memory. A chunk has at least 64 rows in any case.
const chunkLogits = 1 << 23

// loadOutput loads the last norm and the head, and allocates buffers for the batches of a state. o may be nil.
func (d *Decoder) loadOutput(ctx context.Context, w Weights, s *State, o Observer) (*output, error) {
	norm, err := loadNorm(ctx, w, d.Head.Norm)
	if err != nil {
		return nil, err
	}
	linear, err := loadLinear(ctx, w, d.Head.Linear)
	if err != nil {
		return nil, err
	}
	rows := s.largestBatch()
	chunk := min(rows, max(64, chunkLogits/d.Vocab))
	return &output{d.pass(ctx, o), d.Head, norm, linear, sgemm.Dense(rows, d.Hidden, nil), sgemm.Dense(chunk, d.Vocab, nil)}, nil
}

// inputs returns the head's inputs for a batch; they are valid until the next call.
func (o *output) inputs(b batch, s *State) (sgemm.Matrix, error) {
	x := o.x.Slice(0, b.rows, 0, o.x.Cols)
	return x, o.norm.apply(o.pass, x, b.hidden(s))
}

// logitsOf returns a chunk of the logits of x that starts at row from. The result is valid until the next call.
func (o *output) logitsOf(x sgemm.Matrix, from int) (sgemm.Matrix, error) {
	to := min(x.Rows, from+o.logits.Rows)
	y := o.logits.Slice(0, to-from, 0, o.logits.Cols)
	if err := o.linear.apply(o.pass, y, x.Slice(from, to, 0, x.Cols)); err != nil || o.Scale == 1 && o.Cap == 0 {
		return y, err
	}
	return y, o.rows(y.Rows, func(i int) {
		scale(y.Row(i), o.Scale)
		if o.Cap > 0 {
			vector.Softcap(y.Row(i), 1, o.Cap)
		}
	})
}

// chunk is the logits of some rows of a batch. It is valid until the next chunk.
type chunk struct {
	batch
	from, row int // first row of the chunk, in the batch and among all tokens
	logits    sgemm.Matrix
}

// eachChunk computes the logits of a state chunk by chunk. The observer gets the head's inputs unless the head is tied
// to the embedding.
func (o *output) eachChunk(s *State, f func(c chunk) error) error {
	for b := range s.batches() {
		x, err := o.inputs(b, s)
		if err != nil {
			return err
		}
		if !o.Tied {
			if err := o.observe(x, o.Linear); err != nil {
				return err
			}
		}
		for from := 0; from < x.Rows; from += o.logits.Rows {
			y, err := o.logitsOf(x, from)
			if err == nil {
				err = f(chunk{b, from, b.row + from, y})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// logSumExp returns the logarithm of the sum of exp(v).
func logSumExp(row []float32) float64 {
	largest := row[0]
	for _, v := range row {
		if v > largest {
			largest = v
		}
	}
	sum := 0.0
	for _, v := range row {
		sum += vector.Exp(float64(v) - float64(largest))
	}
	return float64(largest) + elementary.Log(sum)
}
