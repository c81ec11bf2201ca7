package forward

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// Score computes the loss of every predicted token from the state behind the last block. o sees the head's
// inputs, unless the head is tied to the embedding; it may be nil.
func (d *Decoder) Score(ctx context.Context, w Weights, s *State, o Observer) (*Scores, error) {
	return d.score(ctx, w, &Result{End: s}, o)
}

// score is Score of the result's end. It also fills in the logits, if the result has room for them.
func (d *Decoder) score(ctx context.Context, w Weights, r *Result, o Observer) (*Scores, error) {
	s := r.End
	if err := s.at(len(d.blocks)); err != nil {
		return nil, err
	}
	head, err := d.loadOutput(ctx, w, s)
	if err != nil {
		return nil, err
	}
	nats, targets := make([]float64, s.Hidden.Rows), s.targets()
	err = head.eachChunk(ctx, s, o, func(c chunk) error {
		return d.rows(ctx, c.logits.Rows, func(i int) {
			row, y := c.row+i, c.logits.Row(i)
			target := targets[row]
			if target < 0 && r.logSums == nil {
				return
			}
			sum := logSumExp(y)
			if target >= 0 {
				nats[row] = sum - float64(y[target])
			}
			if r.logSums != nil {
				r.logSums[row] = sum
				copy(r.logits.Row(row), y)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return s.scores(nats)
}

// targets has the token after each token, and -1 for the last token of a sequence.
func (s *State) targets() []int32 {
	targets := make([]int32, 0, s.Hidden.Rows)
	for _, tokens := range s.Tokens {
		targets = append(append(targets, tokens[1:]...), -1)
	}
	return targets
}

// scores divides the losses of all tokens into sequences.
func (s *State) scores(nats []float64) (*Scores, error) {
	all := &Scores{}
	for i, tokens := range s.Tokens {
		n := len(tokens)
		all.Nats = append(all.Nats, nats[:n-1:n-1])
		for at, v := range nats[:n-1] {
			if v-v != 0 {
				return nil, fmt.Errorf("the loss in sequence %d at position %d is not finite: look for NaN, infinite or very large weights in the last norm and the head", i, at)
			}
		}
		nats = nats[n:]
	}
	return all, nil
}

// output is the last norm and the head, with buffers for their results.
type output struct {
	d      *Decoder
	norm   loadedNorm
	head   loaded
	x      sgemm.Matrix // of the largest batch
	logits sgemm.Matrix // of a chunk of a batch
}

// chunkLogits limits how many logits are in memory at once, but a chunk has at least 64 rows.
const chunkLogits = 1 << 23

func (d *Decoder) loadOutput(ctx context.Context, w Weights, s *State) (*output, error) {
	norm, err := d.final.load(ctx, w)
	if err != nil {
		return nil, err
	}
	head, err := d.head.load(ctx, w)
	if err != nil {
		return nil, err
	}
	rows := s.largestBatch()
	chunk := min(rows, max(64, chunkLogits/d.vocab))
	return &output{d, norm, head, sgemm.Dense(rows, d.hidden, nil), sgemm.Dense(chunk, d.vocab, nil)}, nil
}

// inputs returns the head's inputs for a batch; they are valid until the next call.
func (o *output) inputs(ctx context.Context, b batch, s *State) (sgemm.Matrix, error) {
	x := o.x.Slice(0, b.rows, 0, o.d.hidden)
	return x, o.d.normalize(ctx, o.norm, x, b.hidden(s))
}

// logitsOf computes a chunk of the logits of x, from a row on; it is valid until the next call.
func (o *output) logitsOf(ctx context.Context, x sgemm.Matrix, from int) (sgemm.Matrix, error) {
	d, to := o.d, min(x.Rows, from+o.logits.Rows)
	y := o.logits.Slice(0, to-from, 0, d.vocab)
	if err := d.apply(ctx, o.head, y, x.Slice(from, to, 0, d.hidden)); err != nil || d.logitScale == 1 && d.logitCap == 0 {
		return y, err
	}
	return y, d.rows(ctx, y.Rows, func(i int) {
		scale(y.Row(i), d.logitScale)
		if d.logitCap > 0 {
			softcap(y.Row(i), 1, d.logitCap)
		}
	})
}

// chunk is the logits of some rows of a batch. It is valid until the next chunk.
type chunk struct {
	batch
	from, row int // its first row, in the batch and among all tokens
	logits    sgemm.Matrix
}

// eachChunk computes the logits of a state chunk by chunk. observer, which may be nil, sees the head's
// inputs unless the head is the embedding.
func (o *output) eachChunk(ctx context.Context, s *State, observer Observer, f func(c chunk) error) error {
	for b := range s.batches() {
		x, err := o.inputs(ctx, b, s)
		if err != nil {
			return err
		}
		if !o.d.tied {
			if err := observe(observer, x, o.d.head); err != nil {
				return err
			}
		}
		for from := 0; from < x.Rows; from += o.logits.Rows {
			y, err := o.logitsOf(ctx, x, from)
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

// logSumExp is the logarithm of the sum of exp(v).
func logSumExp(row []float32) float64 {
	largest := row[0]
	for _, v := range row {
		if v > largest {
			largest = v
		}
	}
	sum := 0.0
	for _, v := range row {
		sum += exp(float64(v) - float64(largest))
	}
	return float64(largest) + math.Log(sum)
}
