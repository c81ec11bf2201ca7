package forward

import (
	"context"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/forward/vector"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// attention is causal attention with its weights.
type attention struct {
	*decoder.Attention
	first interface { // makes queries, keys and values, in the columns that Heads describes
		apply(p *pass, y, x sgemm.Matrix) error
	}
	out  linear
	y, z sgemm.Matrix // outputs of first; concatenated outputs of the query heads
}

// loadAttention loads the weights, and allocates buffers for batches of rows rows.
func loadAttention(ctx context.Context, w Weights, d *decoder.Attention, rows int) (*attention, error) {
	a := &attention{Attention: d, y: sgemm.Dense(rows, d.Width(), nil), z: sgemm.Dense(rows, d.Queries*d.ValueSize, nil)}
	var err error
	if d.Latent != nil {
		a.first, err = loadLatent(ctx, w, d.Latent, d.Heads, rows)
	} else {
		a.first, err = loadHeads(ctx, w, d)
	}
	if err != nil {
		return nil, err
	}
	a.out, err = loadLinear(ctx, w, d.Out)
	return a, err
}

func (a *attention) apply(p *pass, to, x sgemm.Matrix) error {
	y, z := a.y.Slice(0, x.Rows, 0, a.y.Cols), a.z.Slice(0, x.Rows, 0, a.z.Cols)
	if err := a.first.apply(p, y, x); err != nil {
		return err
	}
	if a.Rotary != nil {
		if err := turn(p, a.Rotary, y, a.Heads); err != nil {
			return err
		}
	}
	if err := a.attendAll(p, z, y); err != nil {
		return err
	}
	if err := p.observe(z, a.Out); err != nil {
		return err
	}
	return a.out.apply(p, to, z)
}

// attendAll writes the outputs z of all query heads of all sequences.
func (a *attention) attendAll(p *pass, z, y sgemm.Matrix) error {
	starts := make([]int, len(p.sequences))
	for i := 1; i < len(p.sequences); i++ {
		starts[i] = starts[i-1] + len(p.sequences[i-1])
	}
	return parallel.Run(p, len(p.sequences)*a.Queries, p.workers, func(_ context.Context, i int) error {
		s, head := i/a.Queries, i%a.Queries
		from, to := starts[s], starts[s]+len(p.sequences[s])
		columns := func(m sgemm.Matrix, at, width int) sgemm.Matrix { return m.Slice(from, to, at, at+width) }
		kv := head / (a.Queries / a.KV)
		return a.attend(p, head, columns(z, head*a.ValueSize, a.ValueSize),
			columns(y, a.Query(head), a.Size), columns(y, a.Key(kv), a.Size), columns(y, a.Value(kv), a.ValueSize))
	})
}

// queryRun is the number of queries that are scored at a time. All of them are scored with the same keys, so a small
// number wastes few scores. It is a multiple of four and of a product's tile height.
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
		first := a.firstKey(from) / keyRun * keyRun // no query of the run sees earlier keys
		width := (to - first + keyRun - 1) / keyRun * keyRun
		p := sgemm.Dense(to-from, width, (*buffer)[:(to-from)*width])
		keys.Mul(p, q.Slice(from, to, 0, a.Size), 0, first)
		for i := range p.Rows {
			row, low, high := p.Row(i), a.firstKey(from+i)-first, from+i+1-first
			a.weigh(row[low:high], head)
			clear(row[:low])
			clear(row[high:])
			seen[i] = row[low:high]
		}
		vector.InverseSums(inverse[:p.Rows], seen[:p.Rows])
		out := z.Slice(from, to, 0, a.ValueSize)
		values.Mul(out, p.Slice(0, p.Rows, 0, to-first), first, 0)
		for i := range out.Rows {
			for j := range out.Row(i) {
				out.Row(i)[j] *= inverse[i]
			}
		}
	}
	return nil
}

// firstKey returns the first key that a query sees.
func (a *attention) firstKey(query int) int {
	if a.Window == 0 {
		return 0
	}
	return max(0, query-a.Window+1)
}

// weigh replaces the products of a query with its keys by softmax weights that are not yet divided by their sum.
func (a *attention) weigh(row []float32, head int) {
	scale := float32(1)
	switch {
	case a.ALiBi != nil:
		addBias(a.ALiBi, row, float64(a.Scale), head)
	case a.Cap > 0:
		vector.Softcap(row, float64(a.Scale), a.Cap)
	default:
		scale = a.Scale
	}
	vector.ExpScaled(row, scale, vector.Maximum(row))
}
