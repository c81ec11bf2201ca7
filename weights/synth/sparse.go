package synth

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// sparseRows is the distance between rows with values in a sparse matrix. Every block of 128×128 has one row with values, so
// every scale applies to some values.
const sparseRows = 128

// sparseCode is the standard deviation of a sparse model's FP8 codes. With it the largest codes reach the type's largest
// magnitude, as they do if the scale comes from a block's largest value.
const sparseCode = 80

// checkSparse returns an error for options that sparse models do not support.
func (m *model) checkSparse(o Options) error {
	if !o.Sparse {
		if len(o.Filled) > 0 {
			return fmt.Errorf("only a sparse model can have filled files: set Sparse")
		}
		return nil
	}
	if m.format.Name != "" && (m.format.Codes != "fp8" || m.format.Per != "block") {
		return fmt.Errorf("a sparse model is unquantised or FP8 in blocks, not %s", m.format)
	}
	for _, n := range o.Filled {
		if n < 1 || n > len(m.shards) {
			return fmt.Errorf("there is no file %d to fill: give numbers from 1 to %d", n, len(m.shards))
		}
	}
	return nil
}

// writeSparse writes the files with holes. FP8 codes are random; they are not rounded from weights.
func (m *model) writeSparse(ctx context.Context, tmp string, o Options, progress func(n int)) error {
	step := make([]int, len(m.shards))
	for i := range step {
		step[i] = sparseRows
	}
	for _, n := range o.Filled {
		step[n-1] = 1
	}
	var mu sync.Mutex
	return parallel.Run(ctx, len(m.shards), o.Workers, func(ctx context.Context, i int) error {
		s := m.shards[i]
		f, err := weights.FillSparse(filepath.Join(tmp, s.file), s.head, s.size())
		if err != nil {
			return err
		}
		for _, info := range s.tensors {
			if err := m.writeRows(ctx, f, info, step[i], o.Seed); err != nil {
				f.Abort()
				return err
			}
			mu.Lock()
			progress(int(info.Size()))
			mu.Unlock()
		}
		return f.Close()
	})
}

// writeRows writes every step-th row of a matrix, and all rows of scales and of tensors that are not matrices.
func (m *model) writeRows(ctx context.Context, f *weights.Filling, info weights.Info, step int, seed uint64) error {
	kind, known := m.kinds[info.Name]
	if !known {
		_, err := f.WriteAt(m.blockScales(info, seed), info.Begin)
		return err
	}
	t := newTensor(info, kind, seed)
	if _, coded := m.values[info.Name]; coded {
		for r := range t.rowScale {
			t.rowScale[r] *= sparseCode
		}
	}
	n := 1 // rows in one write
	if step == 1 {
		n = max(1, blockBytes/max(1, t.rowBytes()))
	}
	data, values := make([]byte, n*t.rowBytes()), make([]float32, t.cols)
	for r := 0; r < t.rows; r += n * step {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := data[:min(n, t.rows-r)*t.rowBytes()]
		t.fill(part, r, len(part)/max(1, t.rowBytes()), values)
		if _, err := f.WriteAt(part, info.Begin+int64(r*t.rowBytes())); err != nil {
			return err
		}
	}
	return nil
}

// blockScales returns the bytes of random F32 scales for FP8 codes.
func (m *model) blockScales(info weights.Info, seed uint64) []byte {
	values := logNormal(info.Len(), outputSpread, newStream(key(seed, info.Name, "values"), 0))
	inputs := info.Shape[len(info.Shape)-1] * m.format.Block[1]
	for i := range values {
		values[i] /= float32(sparseCode * math.Sqrt(float64(inputs)))
	}
	data := make([]byte, info.Size())
	encoders[info.DType](data, values)
	return data
}
