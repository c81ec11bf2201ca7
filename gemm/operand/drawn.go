package operand

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// drawn is a matrix with values of a pattern. Blocks are drawn one at a time. If a block needs the whole matrix, the
// matrix is drawn once, and blocks are copied from it.
type drawn struct {
	source Source
	spec   pattern.Spec

	mu   sync.Mutex
	made *gemm.Matrix
}

func newDrawn(s Source, spec pattern.Spec) *Matrix {
	return &Matrix{DType: spec.DType, Rows: spec.Rows, Cols: spec.Cols, values: &drawn{source: s, spec: spec}}
}

// mostForBlocks is the largest size in bytes of a matrix that is drawn completely to copy blocks from it.
const mostForBlocks = 8 << 30

// tooLarge returns an error if blocks need the whole matrix and the matrix is too large.
func (d *drawn) tooLarge() error {
	bytes := float64(d.spec.Rows) * float64(d.spec.Cols) * float64(d.spec.DType.Bits()/8)
	if d.source.Pattern.Local() || bytes <= mostForBlocks {
		return nil
	}
	return fmt.Errorf("%s: a step of this pattern needs the whole matrix of %.0f GB, but the limit is %.1f GB: choose a smaller shape",
		d.source.Text, bytes/1e9, mostForBlocks/1e9)
}

func (d *drawn) block(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
	if d.source.Pattern.Local() {
		return d.source.Pattern.Block(ctx, d.spec, pattern.Range{From: row, To: row + rows}, pattern.Range{From: col, To: col + cols})
	}
	if err := d.tooLarge(); err != nil {
		return nil, err
	}
	m, err := d.whole(ctx)
	if err != nil {
		return nil, err
	}
	return (&stored{m: m, file: d.source.Text}).cut(ctx, row, rows, col, cols)
}

func (d *drawn) whole(ctx context.Context) (gemm.Matrix, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		data, err := d.source.Pattern.Generate(ctx, d.spec, runtime.GOMAXPROCS(0))
		if err != nil {
			return gemm.Matrix{}, err
		}
		d.made = &gemm.Matrix{DType: d.spec.DType, Rows: d.spec.Rows, Cols: d.spec.Cols, Data: data}
	}
	return *d.made, nil
}
