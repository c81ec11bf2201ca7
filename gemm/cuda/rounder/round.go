package rounder

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
)

// mostElements is the largest number of values that are rounded at a time. Rows are independent, so a layer can be
// rounded in parts.
const mostElements = 1 << 27

// Round implements [rounding.DeviceHessian].
func (h *handle) Round(ctx context.Context, w rounding.Values, f rounding.FactorOptions, choosers []rounding.Table, o rounding.Options) ([][]byte, error) {
	for _, c := range choosers {
		if !choosers[0].Alike(c) || c.Format != w.Format {
			return nil, fmt.Errorf("rounding on the GPU: all choosers of one call must have the same format and kind, and may differ only in their prices")
		}
	}
	on, err := h.hessian(ctx)
	if err != nil {
		return nil, err
	}
	defer on.users.Add(-1)
	order, err := rounding.Order(on.diagonal, f.First)
	if err != nil {
		return nil, err
	}
	damp, err := rounding.Damping(on.diagonal, f.Damp)
	if err != nil {
		return nil, err
	}
	if w.Cols != on.width {
		panic(fmt.Sprintf("rounder: w of %d×%d and a Hessian of %d columns do not fit", w.Rows, w.Cols, on.width))
	}
	if damp == 0 {
		return nil, rounding.ErrNoFeedback
	}
	all := make([][]byte, 0, len(choosers))
	// As many choosers run together as the memory allows. If a single chooser needs too much memory, it runs on part of
	// the rows.
	together := max(1, min(len(choosers), mostElements/max(1, w.Rows*w.Cols)))
	step := w.Rows
	if together == 1 {
		step = max(1, min(step, mostElements/w.Cols))
	}
	j := &job{handle: h, ctx: ctx, format: w.Format, order: order, damp: damp, zero: o.Zero}
	for c := 0; c < len(choosers); c += together {
		j.choosers = choosers[c:min(c+together, len(choosers))]
		bytes := w.Rows * w.Cols * size(w.Format)
		raw := make([]byte, len(j.choosers)*bytes)
		for n := 0; n < w.Rows; n += step {
			end := min(n+step, w.Rows)
			in, err := rows(w, n, end, o.Workers)
			if err != nil {
				return nil, err
			}
			out := raw
			if step < w.Rows {
				out = raw[n*w.Cols*size(w.Format) : end*w.Cols*size(w.Format)]
			}
			if err := j.run(on, in, out, n, end); err != nil {
				return nil, err
			}
		}
		for i := range j.choosers {
			all = append(all, stored(w, 0, raw[i*bytes:(i+1)*bytes:(i+1)*bytes], o.Workers))
		}
	}
	return all, nil
}

// job rounds some rows by some choosers.
type job struct {
	*handle
	ctx      context.Context
	format   weights.Format
	order    []int
	damp     float64
	zero     int
	choosers []rounding.Table

	// Addresses on the card.
	u, gain, d, where       cuda.Address
	values, errors          cuda.Address
	prices, exponents       cuda.Address
	width, ld, rows, ldRows int
}

// run rounds rows [n, end) of in and writes them to out, both in the stored format.
func (j *job) run(on *hessian, in, out []byte, n, end int) error {
	j.work.Lock()
	defer j.work.Unlock()
	j.width, j.ld = on.width, padded(on.width)
	j.rows = len(j.choosers) * (end - n)
	j.ldRows = padded(j.rows)
	return j.device.Do(func() error {
		if err := j.factor(on); err != nil {
			return err
		}
		if err := j.upload(in, end-n, n); err != nil {
			return err
		}
		if err := j.round(); err != nil {
			return err
		}
		return j.download(out)
	})
}

// factor computes U and D of the damped Hessian in the order of rounding.
func (j *job) factor(on *hessian) (err error) {
	numbers := make([]int32, len(j.order))
	for i, k := range j.order {
		numbers[i] = int32(k)
	}
	var corner, ut, yt, failed cuda.Address
	for _, s := range []struct {
		to    *cuda.Address
		name  string
		bytes int
	}{
		{&j.u, "the factor", 4 * j.ld * j.ld}, {&j.d, "pivots", 8 * j.ld}, {&j.where, "the order", 4 * j.ld}, {&j.gain, "gains", 4 * j.ld},
		{&corner, "a corner", 8 * panel * panel}, {&ut, "a panel", 4 * panel * j.ld}, {&yt, "its products", 4 * panel * j.ld}, {&failed, "a failure", 16},
	} {
		if *s.to, err = j.space(s.name, s.bytes); err != nil {
			return err
		}
	}
	if err := j.device.Upload(j.where, bytesOf(numbers)); err != nil {
		return err
	}
	if err := j.device.Clear(failed, 16); err != nil {
		return err
	}
	if err := j.unpacked(j.u, j.d, on, j.where, j.ld); err != nil {
		return err
	}
	k := j.kernels
	for p1 := j.width; p1 > 0; {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		cols := min(p1, panel)
		p0 := p1 - cols
		if err := k.corner.Launch(cuda.Grid{}, cuda.Grid{X: panel}, j.u, j.ld, j.d, corner, p0, cols, j.damp, noise, indefinite, failed); err != nil {
			return err
		}
		if p0 > 0 {
			if err := k.solve.Launch(cuda.Grid{X: ceil(p0, panel)}, cuda.Grid{X: panel}, j.u, j.ld, j.d, corner, ut, yt, j.ld, p0); err != nil {
				return err
			}
			if err := k.multiply(j.u, j.ld, yt, j.ld, ut, j.ld, p0, p0, panel, false, true); err != nil {
				return err
			}
		}
		p1 = p0
	}
	var failure [2]float64
	if err := j.device.Download(bytesOf(failure[:]), failed); err != nil {
		return err
	}
	if failure[0] != 0 {
		return rounding.NotSemidefinite(failure[1], j.damp)
	}
	return nil
}

// unpacked queues the unpacking of the Hessian to a[ld, ld], in the given order. It also unpacks the diagonal to d
// unless d is 0.
func (r *Rounder) unpacked(a, d cuda.Address, on *hessian, order cuda.Address, ld int) error {
	return r.kernels.unpack.Launch(cuda.Grid{X: ld, Y: ceil(ld, 4*threads)}, cuda.Grid{X: threads}, a, d, on.at, order, on.width, ld)
}

// upload copies rows and the choosers' prices and steps to the card.
func (j *job) upload(in []byte, rows, first int) (err error) {
	c := j.choosers[0]
	prices := make([]float32, mostPrices*len(j.choosers))
	var steps []int32
	for i, c := range j.choosers {
		copy(prices[mostPrices*i:], c.Prices)
		for n := range rows {
			step := 0
			if c.Kind == rounding.GridKind {
				step = c.Exponents[first+n]
			}
			steps = append(steps, int32(step))
		}
	}
	var raw cuda.Address
	for _, s := range []struct {
		to    *cuda.Address
		name  string
		bytes int
	}{
		{&raw, "stored values", max(len(in), len(in)*len(j.choosers))}, {&j.prices, "prices", 4 * len(prices)}, {&j.exponents, "steps", 4 * len(steps)},
		{&j.values, "values", 4 * j.ld * j.ldRows}, {&j.errors, "errors", 4 * j.ld * j.ldRows},
	} {
		if *s.to, err = j.space(s.name, s.bytes); err != nil {
			return err
		}
	}
	if err := j.device.Upload(raw, in); err != nil {
		return err
	}
	if err := j.device.Upload(j.prices, bytesOf(prices)); err != nil {
		return err
	}
	if err := j.device.Upload(j.exponents, bytesOf(steps)); err != nil {
		return err
	}
	if err := j.kernels.gather.Launch(cuda.Grid{X: ceil(j.width, square), Y: ceil(rows, square), Z: len(j.choosers)}, cuda.Grid{X: threads},
		j.values, j.errors, j.ldRows, raw, cuda.Address(0), j.where, rows, j.width, len(j.choosers), flag(size(j.format) == 2)); err != nil {
		return err
	}
	return j.kernels.gains.Launch(cuda.Grid{X: ceil(j.width, threads)}, cuda.Grid{X: threads}, j.gain, j.d, c.Scale, j.width)
}

// round rounds all columns.
func (j *job) round() error {
	c := j.choosers[0]
	l := rounding.LatticeOf(c.Format)
	for k0 := 0; k0 < j.width; k0 += block {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		k1 := min(k0+block, j.width)
		if err := j.kernels.decide.Launch(cuda.Grid{X: ceil(j.rows, square)}, cuda.Grid{X: threads},
			j.values, j.errors, j.ldRows, j.u, j.ld, j.gain, k0, k1, j.rows, j.zero, int(c.Kind), j.prices, len(c.Prices), j.rows/len(j.choosers),
			j.exponents, c.Zeroed, l.Mant, l.Floor, l.Top, l.Bottom, int(int32(l.Sign)), int(int32(l.From)), int(int32(l.To)), l.Bits); err != nil {
			return err
		}
		if k1 == j.width {
			break
		}
		if err := j.kernels.multiply(j.values.Plus(4*k1*j.ldRows), j.ldRows, j.u.Plus(4*(k0*j.ld+k1)), j.ld,
			j.errors.Plus(4*k0*j.ldRows), j.ldRows, j.width-k1, j.rows, block, false, false); err != nil {
			return err
		}
	}
	return nil
}

// download copies the chosen values from the card, in the stored format.
func (j *job) download(out []byte) error {
	raw, err := j.space("stored values", len(out))
	if err != nil {
		return err
	}
	if err := j.kernels.scatter.Launch(cuda.Grid{X: ceil(j.width, square), Y: ceil(j.rows, square)}, cuda.Grid{X: threads},
		raw, j.values, j.ldRows, j.where, j.rows, j.width, flag(size(j.format) == 2)); err != nil {
		return err
	}
	return j.device.Download(out, raw)
}
