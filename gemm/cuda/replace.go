package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// Replace overwrites the operands of product i with other operands of the same problem. Kernel and graph do not change.
// The batch must not be running, but another batch may run meanwhile. Products that share an x also share the new one.
// NaNs and infinities are a [gemm.ErrNotFinite] that names the operand. If ctx ends or the card fails, the contents of
// the operands are undefined.
func (b *Batch) Replace(ctx context.Context, i int, x, w gemm.Matrix) error {
	if i < 0 || i >= len(b.layers) {
		return fmt.Errorf("batch %s: there is no product %d: the batch has %d, counted from 0", b.name, i, len(b.layers))
	}
	l := b.layers[i]
	p := Product{Name: l.Name, Problem: l.Problem, X: x, W: w}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("batch %s: %s: %w", b.name, p.Name, err)
	}
	if err := l.SameForm(p); err != nil {
		return fmt.Errorf("batch %s: %s: %w", b.name, p.Name, err)
	}
	l.Product = p
	s := l.product.sizes()
	xRows, wRows := s.rowsOf(l.problem)
	err := b.replace(ctx, l.x, x, 1, xRows, s.k)
	if err == nil {
		err = b.replaceScales(l)
	}
	if w.Codes != nil { // codes are uploaded as packed bytes
		data := pack(w.Codes, b.stack)
		w = gemm.Matrix{Rows: wRows, Cols: s.k, Data: data}
	}
	for _, at := range l.w {
		if err == nil && l.W.Codes != nil {
			err = b.replace(ctx, at, w, 1, wRows, s.k)
		} else if err == nil {
			err = b.replace(ctx, at, w, b.stack, wRows, s.k)
		}
	}
	if err != nil {
		return fmt.Errorf("batch %s: %s: %w", b.name, p.Name, err)
	}
	return nil
}

// Copy overwrites the operands with those of another batch. Both batches must have the same products and options.
// Kernels, graph and addresses do not change. Neither batch may be running. If the weights have a different form, Copy
// returns an [ErrOtherForm] and changes nothing. If the card fails, the contents of the operands are undefined.
func (b *Batch) Copy(from *Batch) error {
	if len(b.layers) != len(from.layers) || b.copies != from.copies || b.stack != from.stack {
		return fmt.Errorf("batch %s: its products or options differ from those of batch %s", b.name, from.name)
	}
	for i, l := range b.layers {
		if err := l.SameForm(from.layers[i].Product); err != nil {
			return fmt.Errorf("batch %s: %s: %w", b.name, l.Name, err)
		}
	}
	if !slices.Equal(b.memory.sizes, from.memory.sizes) {
		return fmt.Errorf("batch %s: %w", b.name, ErrOtherForm)
	}
	for i, l := range from.layers {
		b.layers[i].Product, b.layers[i].scales = l.Product, l.scales
	}
	return b.device.thread.do(func() error {
		for i, to := range b.memory.addresses {
			if err := b.device.CopyWithin(Address(to), Address(from.memory.addresses[i]), b.memory.sizes[i]); err != nil {
				return fmt.Errorf("batch %s: %w", b.name, err)
			}
		}
		return b.device.sync()
	})
}

// SameForm returns an [ErrOtherForm] if another product has a different type or role, or a different form of scales or
// codes.
func (p Product) SameForm(other Product) error {
	a, b := p.W, other.W
	if p.Problem != other.Problem || (a.Codes == nil) != (b.Codes == nil) || (a.Scales == nil) != (b.Scales == nil) {
		return ErrOtherForm
	}
	if a.Codes != nil {
		kernels := takesFew(p.Problem.M, a.Codes) != takesFew(p.Problem.M, b.Codes)
		if formatOf(a.Codes) != formatOf(b.Codes) || kernels || tooLarge(b.Codes) || a.Scales != nil && a.Scales.Values[0] != b.Scales.Values[0] { // the scale is an argument of the captured launch
			return ErrOtherForm
		}
		return nil
	}
	if a.Scales != nil && (a.Scales.Rows != b.Scales.Rows || a.Scales.Cols != b.Scales.Cols) {
		return ErrOtherForm
	}
	return nil
}

// ErrOtherForm is the error for weights whose type, role, code format or scales do not fit the batch's captured kernels.
var ErrOtherForm = errors.New("the batch's captured kernels cannot use the new weights, because their type, role, code format or scales differ: make a new batch")

// replaceScales uploads the scales of the layer's new weights.
func (b *Batch) replaceScales(l *layer) error {
	m, ok := l.product.(*matmul)
	if !ok || l.scales == nil {
		return nil
	}
	var err error
	if l.scales, err = stackScales(l.W.Scales, l.Problem.N, b.stack); err != nil {
		return err
	}
	data := l.scaleData()
	return b.device.thread.do(func() error { return b.device.upload(m.scales.at[0], data[0]) })
}

// replace uploads several copies of m to an address, stacked along the rows. It does so in pieces, between which
// another batch can replay.
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
