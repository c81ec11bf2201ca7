package forward

import (
	"context"
	"math"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// attention is causal attention. y has queries, keys and values in the columns that heads describes. z has the
// outputs of the query heads side by side.
type attention struct {
	heads
	scale  float32 // of scores
	cap    float64 // scores are cap·tanh(score/cap); 0: not
	window int     // how many keys a query sees, its own the last; 0: all before it
	rotary *rotary // nil where there is none
	alibi  *alibi  // nil where there is none
}

func (a *attention) widths() (in, out int) { return a.width(), a.queries * a.valueSize }

func (a *attention) mix(ctx context.Context, d *Decoder, z, y sgemm.Matrix, sequences [][]int32) error {
	if a.rotary != nil {
		if err := a.rotary.apply(ctx, d, y, a.heads, sequences); err != nil {
			return err
		}
	}
	starts := make([]int, len(sequences))
	for i := 1; i < len(sequences); i++ {
		starts[i] = starts[i-1] + len(sequences[i-1])
	}
	return parallel.Run(ctx, len(sequences)*a.queries, d.Workers, func(_ context.Context, i int) error {
		s, head := i/a.queries, i%a.queries
		from, to := starts[s], starts[s]+len(sequences[s])
		columns := func(m sgemm.Matrix, at, width int) sgemm.Matrix { return m.Slice(from, to, at, at+width) }
		kv := head / (a.queries / a.kv)
		return a.attend(ctx, head, columns(z, head*a.valueSize, a.valueSize),
			columns(y, a.query(head), a.size), columns(y, a.key(kv), a.size), columns(y, a.value(kv), a.valueSize))
	})
}

// queryRun is the number of queries that are scored at once. All of them are scored with the same keys, so a
// small number computes few scores in vain. It is a multiple of a product's tile height and of four.
const queryRun = 28

// keyRun is the granularity of the keys of a run: a product's tile width.
const keyRun = 32

// scores are buffers for the scores of a run.
var scores = sync.Pool{New: func() any { return new([]float32) }}

// attend writes z = softmax(q·kᵀ·scale)·v for one query head of one sequence.
func (a *attention) attend(ctx context.Context, head int, z, q, k, v sgemm.Matrix) error {
	buffer := scores.Get().(*[]float32)
	defer scores.Put(buffer)
	if need := queryRun * (q.Rows + keyRun); len(*buffer) < need {
		*buffer = make([]float32, need)
	}
	keys, values := sgemm.Pack(k, true), sgemm.Pack(v, false)
	defer keys.Release()
	defer values.Release()
	var inverse [queryRun]float32
	var seen [queryRun][]float32 // the weights of the keys that a query sees
	for from := 0; from < q.Rows; from += queryRun {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+queryRun, q.Rows)
		first := a.firstKey(from) / keyRun * keyRun // those before it are seen by no query of the run
		width := (to - first + keyRun - 1) / keyRun * keyRun
		p := sgemm.Dense(to-from, width, (*buffer)[:(to-from)*width])
		keys.Mul(p, q.Slice(from, to, 0, a.size), 0, first)
		for i := range p.Rows {
			row, low, high := p.Row(i), a.firstKey(from+i)-first, from+i+1-first
			a.weigh(row[low:high], head)
			clear(row[:low])
			clear(row[high:])
			seen[i] = row[low:high]
		}
		inverseSums(inverse[:p.Rows], seen[:p.Rows])
		out := z.Slice(from, to, 0, a.valueSize)
		values.Mul(out, p.Slice(0, p.Rows, 0, to-first), first, 0)
		for i := range out.Rows {
			for j := range out.Row(i) {
				out.Row(i)[j] *= inverse[i]
			}
		}
	}
	return nil
}

// firstKey is the first key that a query sees.
func (a *attention) firstKey(query int) int {
	if a.window == 0 {
		return 0
	}
	return max(0, query-a.window+1)
}

// weigh replaces the products of a query with the keys that it sees, up to its own, by weights that are not yet
// divided by their sum.
func (a *attention) weigh(row []float32, head int) {
	scale := float32(1)
	switch {
	case a.alibi != nil:
		a.alibi.add(row, float64(a.scale), head)
	case a.cap > 0:
		softcap(row, float64(a.scale), a.cap)
	default:
		scale = a.scale
	}
	expScaled(row, scale, maximum(row))
}

// inverseSums computes the inverse of each row's sum. A sum is one chain of additions in the row's order. Four
// chains run side by side, so that additions overlap.
func inverseSums(inverse []float32, rows [][]float32) {
	for ; len(rows) >= 4; inverse, rows = inverse[4:], rows[4:] {
		r0, r1, r2, r3 := rows[0], rows[1], rows[2], rows[3]
		n := min(len(r0), len(r1), len(r2), len(r3))
		var s [4]float64
		for i := range n {
			s[0] += float64(r0[i])
			s[1] += float64(r1[i])
			s[2] += float64(r2[i])
			s[3] += float64(r3[i])
		}
		for i, row := range rows[:4] {
			inverse[i] = inverseSum(s[i], row[n:])
		}
	}
	for i, row := range rows {
		inverse[i] = inverseSum(0, row)
	}
}

// inverseSum adds a row to a sum.
func inverseSum(sum float64, row []float32) float32 {
	for _, v := range row {
		sum += float64(v)
	}
	return float32(1 / sum)
}

// defaultScale is the scale of scores for heads with so many channels.
func defaultScale(size int) float64 { return 1 / math.Sqrt(float64(size)) }
