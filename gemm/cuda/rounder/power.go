package rounder

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// chunkRows is the number of rows whose powers are summed together, as in package rounding.
const chunkRows = 256

// Powers implements [rounding.DeviceHessian].
func (h *handle) Powers(ctx context.Context, w rounding.Values, q ...[]byte) ([]float64, error) {
	on, err := h.hessian(ctx)
	if err != nil {
		return nil, err
	}
	defer on.users.Add(-1)
	for _, data := range q {
		if data != nil && len(data) != len(w.Data) {
			panic(fmt.Sprintf("rounder: %d and %d bytes of values do not fit", len(w.Data), len(data)))
		}
	}
	if w.Cols != on.width {
		panic(fmt.Sprintf("rounder: w of %d×%d and a Hessian of %d columns do not fit", w.Rows, w.Cols, on.width))
	}
	sums := make([]float64, max(1, len(q)))
	step := max(chunkRows, min(w.Rows, mostElements/w.Cols/chunkRows*chunkRows))
	together := max(1, min(len(sums), mostElements/max(1, w.Rows*w.Cols)))
	for c := 0; c < len(sums); c += together {
		for n := 0; n < w.Rows; n += step {
			end := min(n+step, w.Rows)
			p := &powers{handle: h, ctx: ctx, copies: min(together, len(sums)-c), rows: end - n, bytes: size(w.Format)}
			own, err := rows(w, n, end, 0)
			if err != nil {
				return nil, err
			}
			var others [][]byte
			for i := c; i < min(c+p.copies, len(q)); i++ {
				if q[i] == nil {
					others = append(others, nil)
					continue
				}
				v := w
				v.Data = q[i]
				other, err := rows(v, n, end, 0)
				if err != nil {
					return nil, err
				}
				others = append(others, other)
			}
			parts, err := p.run(on, own, others)
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

// powers computes the error powers of some rows, for each of several copies of the rows.
type powers struct {
	*handle
	ctx          context.Context
	copies, rows int
	bytes        int // bytes of a value
}

// run returns the sums of chunks, copy by copy.
func (p *powers) run(on *hessian, w []byte, q [][]byte) (sums []float64, err error) {
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
			{&h, "the factor", 4 * ld * ld}, {&order, "the order", 4 * ld}, {&raw, "stored values", len(w)}, {&others, "other values", len(q) * len(w)},
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
		}{{order, bytesOf(own)}, {raw, w}, {from, bytesOf(first)}} {
			if err := p.device.Upload(s.to, s.data); err != nil {
				return err
			}
		}
		for i, data := range q {
			at := others.Plus(i * len(w))
			var err error
			switch {
			case data != nil:
				err = p.device.Upload(at, data)
			case len(w)%4 == 0: // w − 0 is w
				err = p.device.Clear(at, len(w))
			default:
				err = p.device.Upload(at, make([]byte, len(w)))
			}
			if err != nil {
				return err
			}
		}
		if len(q) == 0 {
			others = 0
		}
		if err := p.unpacked(h, 0, on, order, ld); err != nil {
			return err
		}
		if ld > width { // the sums include the padding
			if err := p.device.Clear(et.Plus(4*width*ldAll), 4*(ld-width)*ldAll); err != nil {
				return err
			}
		}
		k := p.kernels
		if err := k.gather.Launch(cuda.Grid{X: ceil(width, square), Y: ceil(p.rows, square), Z: p.copies}, cuda.Grid{X: threads},
			et, cuda.Address(0), ldAll, raw, others, cuda.Address(0), p.rows, width, p.copies, flag(p.bytes == 2)); err != nil {
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
