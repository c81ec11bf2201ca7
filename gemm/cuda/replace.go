package cuda

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// Replace overwrites product i's operands with others of the same problem. Kernel and graph stay. The batch
// must not be running; another batch may be, and continues. Products that share an x share the new one. NaNs
// and infinities are a [gemm.ErrNotFinite] that names the operand. If ctx ends or the card fails, the
// contents of the operands are undefined.
func (b *Batch) Replace(ctx context.Context, i int, x, w gemm.Matrix) error {
	if i < 0 || i >= len(b.layers) {
		return fmt.Errorf("batch %s: there is no product %d to replace: it has %d", b.name, i, len(b.layers))
	}
	l := b.layers[i]
	p := Product{Name: l.Name, Problem: l.Problem, X: x, W: w}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("batch %s: %s: %w", b.name, p.Name, err)
	}
	l.Product = p
	xRows, wRows := l.matmul.shape.rowsOf(l.problem)
	k := l.matmul.shape.k
	err := b.replace(ctx, l.x, x, 1, xRows, k)
	for _, at := range l.w {
		if err == nil {
			err = b.replace(ctx, at, w, b.stack, wRows, k)
		}
	}
	if err != nil {
		return fmt.Errorf("batch %s: %s: %w", b.name, p.Name, err)
	}
	return nil
}

// replace uploads m to an address, stacked times high. Pieces of it alternate with replays of another batch.
func (b *Batch) replace(ctx context.Context, at uint64, m gemm.Matrix, times, rows, cols int) error {
	if times > 1 || rows != m.Rows || cols != m.Cols {
		return b.device.thread.do(func() error { return b.device.stack(at, m, times, rows, cols) })
	}
	for data := m.Data; len(data) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := data[:min(len(data), stagingBytes)]
		if err := b.device.thread.do(func() error { return b.device.upload(at, piece) }); err != nil {
			return err
		}
		at, data = at+uint64(len(piece)), data[len(piece):]
	}
	return nil
}
