package rounder

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// chunkRows is the number of rows whose powers are one sum, as in package rounding.
const chunkRows = 256

// Powers implements [rounding.DeviceHessian].
func (h *handle) Powers(ctx context.Context, w sgemm.Matrix, q ...sgemm.Matrix) ([]float64, error) {
	on, err := h.hessian(ctx)
	if err != nil {
		return nil, err
	}
	defer on.users.Add(-1)
	for _, m := range append([]sgemm.Matrix{w}, q...) {
		if m.Rows != w.Rows || m.Cols != on.width {
			panic(fmt.Sprintf("rounder: w of %d×%d, q of %d×%d and a Hessian of %d columns do not fit", w.Rows, w.Cols, m.Rows, m.Cols, on.width))
		}
	}
	t := transfer{narrow: isNarrow(0, append([]sgemm.Matrix{w}, q...)...)}
	sums := make([]float64, max(1, len(q)))
	rows := max(chunkRows, min(w.Rows, mostElements/w.Cols/chunkRows*chunkRows))
	together := max(1, min(len(sums), mostElements/max(1, w.Rows*w.Cols)))
	for c := 0; c < len(sums); c += together {
		for n := 0; n < w.Rows; n += rows {
			end := min(n+rows, w.Rows)
			p := &powers{handle: h, ctx: ctx, copies: min(together, len(sums)-c), rows: end - n, t: t}
			t.w = w
			in := t.rows(n, end)
			var others []byte
			if len(q) > 0 {
				others = t.buffer(p.copies * p.rows * w.Cols)
				part := len(others) / p.copies
				for i := range p.copies {
					t.encode(others[i*part:(i+1)*part], q[c+i].Slice(n, end, 0, w.Cols))
				}
			}
			parts, err := p.run(on, in, others)
			if err != nil {
				return nil, err
			}
			for i, part := range parts {
				sums[c+i/(len(parts)/p.copies)] += part
			}
		}
	}
	return sums, nil
}

// powers are the error powers of some rows, of each of several copies.
type powers struct {
	*handle
	ctx          context.Context
	copies, rows int
	t            transfer
}

// run returns the sums of chunks, copy by copy.
func (p *powers) run(on *hessian, w, q []byte) (sums []float64, err error) {
	p.work.Lock()
	defer p.work.Unlock()
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	var first []int32
	for c := range p.copies {
		for n := 0; n < p.rows; n += chunkRows {
			first = append(first, int32(c*p.rows+n))
		}
	}
	chunks := len(first)
	first = append(first, int32(p.copies*p.rows))
	sums = make([]float64, chunks)
	width, ld, all := on.width, padded(on.width), p.copies*p.rows
	ldAll := padded(all)
	return sums, p.device.Do(func() (err error) {
		var h, order, raw, others, et, eh, from, to cuda.Address
		for _, s := range []struct {
			to    *cuda.Address
			name  string
			bytes int
		}{
			{&h, "the factor", 4 * ld * ld}, {&order, "the order", 4 * ld}, {&raw, "stored values", len(w)}, {&others, "other values", len(q)},
			{&et, "values", 4 * ld * ldAll}, {&eh, "errors", 4 * ld * ldAll}, {&from, "steps", 4 * len(first)}, {&to, "sums", 8 * chunks},
		} {
			if *s.to, err = p.space(s.name, s.bytes); err != nil {
				return err
			}
		}
		own := make([]int32, width)
		for i := range own {
			own[i] = int32(i)
		}
		for _, s := range []struct {
			to   cuda.Address
			data []byte
		}{{order, bytesOf(own)}, {raw, w}, {others, q}, {from, bytesOf(first)}} {
			if err := p.device.Upload(s.to, s.data); err != nil {
				return err
			}
		}
		if len(q) == 0 {
			others = 0
		}
		if err := p.unpacked(h, 0, on, order, ld); err != nil {
			return err
		}
		if ld > width { // the padding takes part in sums
			if err := p.device.Clear(et.Plus(4*width*ldAll), 4*(ld-width)*ldAll); err != nil {
				return err
			}
		}
		k := p.kernels
		if err := k.gather.Launch(cuda.Grid{X: ceil(width, square), Y: ceil(p.rows, square), Z: p.copies}, cuda.Grid{X: threads},
			et, cuda.Address(0), ldAll, raw, others, cuda.Address(0), p.rows, width, p.copies, flag(p.t.narrow)); err != nil {
			return err
		}
		if err := k.multiply(eh, ld, et, ldAll, h, ld, all, width, ld, true, false); err != nil {
			return err
		}
		if err := k.powers.Launch(cuda.Grid{X: chunks}, cuda.Grid{X: 128}, to, et, ldAll, eh, ld, from, width); err != nil {
			return err
		}
		return p.device.Download(bytesOf(sums), to)
	})
}
