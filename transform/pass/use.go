package pass

import (
	"context"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// use is a weight with an index along one of its axes. It is read label by label.
type use struct {
	order.Use
	w        *quant.Weight
	share    float64         // share of the workload in which neighbours along the axis toggle
	layer    bool            // the weight is a linear layer's matrix
	outAxis  int             // for a layer: the axis of the outputs
	row, col program.AxisMap // planned signs and exponents of earlier passes, by source position
}

// uses lists the matrices and vectors through which an index runs. Thousands of experts read one residual stream, so
// data that they share is stored once.
func (m *Model) uses(ix *arch.Index) []*use {
	var list []*use
	type axis struct {
		positions [][]int
		dir       []int
	}
	seen := map[string]axis{}
	for _, au := range ix.Uses {
		claim := m.Layout.Claims[au.Tensor]
		w, ok := m.Weights.Weight(au.Tensor)
		if !ok || len(claim.Axes) > 2 {
			continue
		}
		f, known := w.DType.Format()
		if !known {
			continue
		}
		on := claim.Axes[au.Axis]
		same, ok := seen[on.String()]
		if !ok {
			same.positions = on.Positions(ix.Name)
			same.dir = on.Exps(func(name string) []int {
				if name != ix.Name {
					return nil
				}
				return ones(ix.Len)
			})
			seen[on.String()] = same
		}
		u := &use{w: w, Use: order.Use{Format: f, Rows: w.Rows, Cols: w.Cols, Axis: au.Axis, Positions: same.positions, Dir: same.dir}}
		u.Guard = func(work func() error) error { return guard(w, work) }
		u.row, u.col = m.Compiler.Symmetries().Matrix(claim)
		if u.layer, u.outAxis = claim.Role == arch.Linear && len(claim.Axes) == 2, claim.OutAxis; u.layer {
			u.share = m.Workload.Decode
			if au.Axis == claim.OutAxis {
				u.share = m.Workload.Prefill
			}
		}
		list = append(list, u)
	}
	return list
}

func ones(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

// signedUses returns the uses that have signs and scales.
func signedUses(uses []*use) []*use {
	var list []*use
	for _, u := range uses {
		if s := u.Signed(); s != nil {
			v := *u
			v.Use = *s
			list = append(list, &v)
		}
	}
	return list
}

// lagged lists the uses whose neighbours toggle in the plan's workload and role, with their lags.
func (m *Model) lagged(ctx context.Context, ix *arch.Index) (list []*use, err error) {
	for _, u := range m.uses(ix) {
		if !u.layer {
			continue
		}
		lags, err := m.Cost.Lags(ctx, cost.Weights{DType: u.w.DType, OutAxis: u.outAxis, Rows: u.Rows, Cols: u.Cols}, u.Axis, m.Role, m.Workload)
		if err != nil {
			return nil, err
		}
		if u.Lags = order.Along(lags, u.Positions); len(u.Lags) > 0 {
			list = append(list, u)
		}
	}
	return list, nil
}

// sketches is the number of indices that are ordered at a time. It does not depend on the machine, so a sketch's size
// does not depend on the number of workers.
const sketches = 8

// sketchBytes returns the largest size of a sketch in bytes. A large sketch takes at most the size of the largest
// tensor (at least 64 MiB), and is made alone. All other sketches that are made at a time take at most this size
// together.
func (m *Model) sketchBytes(uses []*use) (bytes int, large bool) {
	limit, all := 64<<20, 0
	for _, w := range m.Weights.All {
		if !w.Adapter {
			for _, p := range w.Parts {
				limit = max(limit, int(p.Size()))
			}
		}
	}
	for _, u := range uses {
		all += len(u.Positions) * len(u.Positions[0]) * u.Across() * u.Format.Bits / 8
	}
	if all > limit/sketches {
		return limit, true
	}
	return limit / sketches, false
}

// each calls fn with every element of every label after the earlier passes, and the direction of the element's
// position. It stops early if ctx ends.
func (u *use) each(ctx context.Context, fn func(label int, b uint32, dir int)) error {
	if u.Axis == 0 {
		return u.eachRow(ctx, fn)
	}
	for n := range u.Rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := u.w.ReadRows(nil, n, 1)
		for label, list := range u.Positions {
			for _, pos := range list {
				fn(label, u.elem(row, n, pos), directionAt(u.Dir, pos))
			}
		}
	}
	return nil
}

// eachRow is each for labels that are rows.
func (u *use) eachRow(ctx context.Context, fn func(label int, b uint32, dir int)) error {
	for label, list := range u.Positions {
		for _, pos := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			row := u.w.ReadRows(nil, pos, 1)
			for k := range u.Cols {
				fn(label, u.elem(row, pos, k), directionAt(u.Dir, pos))
			}
		}
	}
	return nil
}

// elem returns element [n, k] of the weight; row holds row n.
func (u *use) elem(row []byte, n, k int) uint32 {
	b := u.Format.Elem(row, k)
	flip := u.row.Flipped(n) != u.col.Flipped(k)
	if exp := u.row.Power(n) + u.col.Power(k); flip || exp != 0 {
		b, _ = program.Scaled(u.Format, b, flip, exp)
	}
	return b
}
