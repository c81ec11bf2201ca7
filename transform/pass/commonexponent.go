package pass

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// mostOctaves is the largest magnitude of an index's common exponent. Exponents differ in the same bits every eight
// octaves.
const mostOctaves = 8

// Savings that an octave must exceed, in toggles per element. Small changes are preferred, and larger weights are
// preferred to smaller ones. From σ = 0.02 to 0.64, each octave saved 0.2 % of energy in decode in addition to the
// savings from toggles. Smaller weights were not measured.
const (
	liftCost  = 0.002
	lowerCost = 0.1
)

// exponentChooser chooses one common exponent for the labels of each index, so that layers' elements get exponents
// that differ in few bits. Two indices often scale the same element (rows of v are scaled by the norm's index and by
// v's own), so all common exponents are chosen together.
type exponentChooser struct {
	indices []*arch.Index
	number  map[string]int // of an index by its name
	layers  []fields
	power   []int   // common exponent, by index
	uses    [][]int // layers that an index scales, by index
}

// addCommonExponents adds to the exponents of labels, by index, a common exponent.
func (m *Model) addCommonExponents(ctx context.Context, exps map[string][]int) error {
	v, err := m.exponentChooser(ctx, exps)
	if err != nil {
		return err
	}
	v.descend()
	for i, ix := range v.indices {
		for label := range exps[ix.Name] {
			exps[ix.Name][label] += v.power[i]
		}
	}
	return ctx.Err()
}

// exponentChooser prepares the choice for all layers. exps has the exponents of labels, by index. Only indices whose
// tensors are all BF16 or F32 may get a common exponent: with other types, activations may have fixed scales or could
// overflow.
func (m *Model) exponentChooser(ctx context.Context, exps map[string][]int) (*exponentChooser, error) {
	v := &exponentChooser{number: map[string]int{}}
	for _, ix := range m.Layout.Indices {
		if exps[ix.Name] != nil && m.wide(ix) {
			v.number[ix.Name] = len(v.indices)
			v.indices = append(v.indices, ix)
		}
	}
	labels := program.Symmetries{}
	for name, e := range exps {
		labels[name] = &program.Symmetry{Exp: e}
	}
	linears := m.Linears()
	v.layers = make([]fields, len(linears))
	views := m.previews()
	views.budgeted = true // a coarser grid has more zeros, and the share of zeros affects the choice of powers
	err := m.Parallel(ctx, "exponents", len(linears), len(linears), func(ctx context.Context, i int) (err error) {
		if c := linears[i]; len(c.Axes) == 2 {
			w, _ := m.Weights.Weight(c.Name)
			err = guard(w, func() (err error) {
				v.layers[i], err = v.fields(ctx, views, w, c, labels)
				return err
			})
		}
		return err
	})
	v.connect()
	return v, err
}

// wide reports whether all tensors that an index scales have 8-bit exponents.
func (m *Model) wide(ix *arch.Index) bool {
	for _, u := range ix.Uses {
		w, _ := m.Weights.Weight(u.Tensor)
		if f, ok := w.DType.Format(); u.Signed && (!ok || f.ExpBits < 8) {
			return false
		}
	}
	return true
}

// connect records which layers each index scales.
func (v *exponentChooser) connect() {
	v.power, v.uses = make([]int, len(v.indices)), make([][]int, len(v.indices))
	for l := range v.layers {
		for _, g := range v.layers[l].groups {
			for _, s := range g.by {
				if n := len(v.uses[s.index]); n == 0 || v.uses[s.index][n-1] != l {
					v.uses[s.index] = append(v.uses[s.index], l)
				}
			}
		}
	}
}

// descend improves one index after the other until no change lowers the cost.
func (v *exponentChooser) descend() {
	const mostSweeps = 32
	for range mostSweeps {
		moved := false
		for i := range v.power {
			was := v.power[i]
			v.improve(i)
			moved = moved || v.power[i] != was
		}
		if !moved {
			return
		}
	}
}

// improve gives an index the best power, given the powers of the other indices. Ties go to the smallest power.
func (v *exponentChooser) improve(i int) {
	best, least := 0, math.Inf(1)
	for k := range 2*mostOctaves + 1 { // 0, 1, -1, 2, -2 …
		v.power[i] = (k + 1) / 2 * (2*(k%2) - 1)
		cost := 0.0
		for _, l := range v.uses[i] {
			cost += v.layers[l].toggles(v.power) + v.layers[l].shiftPenalty(v.power)
		}
		if cost < least {
			best, least = v.power[i], cost
		}
	}
	v.power[i] = best
}
