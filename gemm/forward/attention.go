package forward

import (
	"context"
	"math"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// attention is causal attention. y has all query heads, all key heads and all value heads side by
// side; each key head serves heads/kv query heads that follow each other.
type attention struct {
	heads, kv, size int
	rotary          *rotary // nil where positions are learned
}

func (a *attention) widths() (in, out int) { return (a.heads + 2*a.kv) * a.size, a.heads * a.size }

func (a *attention) mix(ctx context.Context, d *Decoder, z, y sgemm.Matrix, sequences [][]int32) error {
	if a.rotary != nil {
		if err := a.rotary.apply(ctx, d, y, (a.heads+a.kv)*a.size, sequences); err != nil {
			return err
		}
	}
	starts := make([]int, len(sequences))
	for i := 1; i < len(sequences); i++ {
		starts[i] = starts[i-1] + len(sequences[i-1])
	}
	return d.parallel(ctx, len(sequences)*a.heads, func(i int) error {
		s, head := i/a.heads, i%a.heads
		from, to := starts[s], starts[s]+len(sequences[s])
		columns := func(m sgemm.Matrix, n int) sgemm.Matrix {
			return m.Slice(from, to, n*a.size, (n+1)*a.size)
		}
		kv := a.heads + head/(a.heads/a.kv)
		return a.attend(ctx, columns(z, head), columns(y, head), columns(y, kv), columns(y, kv+a.kv))
	})
}

// queryRun is how many queries are scored at once: scores of so many stay in the cache, and the keys
// behind the last of them are left out.
const queryRun = 126

// scores are buffers for the scores of a run.
var scores = sync.Pool{New: func() any { return new([]float32) }}

// attend writes z = softmax(q·kᵀ/√size)·v for one head of one sequence.
func (a *attention) attend(ctx context.Context, z, q, k, v sgemm.Matrix) error {
	buffer := scores.Get().(*[]float32)
	defer scores.Put(buffer)
	if need := queryRun * q.Rows; len(*buffer) < need {
		*buffer = make([]float32, need)
	}
	scale := float32(1 / math.Sqrt(float64(a.size)))
	var inverse [queryRun]float32
	for from := 0; from < q.Rows; from += queryRun {
		to := min(from+queryRun, q.Rows)
		p := sgemm.Dense(to-from, to, (*buffer)[:(to-from)*to])
		if err := sgemm.Mul(ctx, p, q.Slice(from, to, 0, a.size), k.Slice(0, to, 0, a.size), sgemm.Op{TransB: true, Workers: 1}); err != nil {
			return err
		}
		for i := range p.Rows {
			row := p.Row(i)
			seen := from + i + 1
			inverse[i] = softmax(row[:seen], scale)
			clear(row[seen:])
		}
		out := z.Slice(from, to, 0, a.size)
		if err := sgemm.Mul(ctx, out, p, v.Slice(0, to, 0, a.size), sgemm.Op{Workers: 1}); err != nil {
			return err
		}
		for i := range out.Rows {
			for j := range out.Row(i) {
				out.Row(i)[j] *= inverse[i]
			}
		}
	}
	return nil
}

// softmax replaces scores by exp(scale·(score - the largest)), and returns the inverse of their sum.
func softmax(row []float32, scale float32) float32 {
	largest := row[0]
	for _, v := range row {
		if v > largest {
			largest = v
		}
	}
	return float32(1 / expScaled(row, scale, largest))
}
