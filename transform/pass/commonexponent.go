package pass

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// mostOctaves bounds the exponent that all labels of an index have in common: exponents look alike
// every eight octaves.
const mostOctaves = 8

// What an octave must save, in toggles per element: a small change is better than a large one, and a
// larger weight better than a smaller. From σ = 0.02 to 0.64 each octave saved 0.2 % in decode besides
// what toggles explain; smaller weights were not measured.
const (
	liftCost  = 0.002
	lowerCost = 0.1
)

// exponentChooser chooses one exponent for all labels of each index, so that the exponents of layers' elements
// lie where few of their bits differ. An element is often scaled by two indices (rows of v by the
// norm's and by v's), so all are chosen together.
type exponentChooser struct {
	indices []*arch.Index
	number  map[string]int // of an index by its name
	layers  []fields
	power   []int   // by index
	uses    [][]int // by index: layers that it scales
}

// addCommonExponents adds to the exponents of labels, by index, an exponent in common.
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

// exponentChooser looks at all layers with the exponents that labels have, by index. Only indices whose tensors
// are all of BF16 or F32 may get an exponent in common: elsewhere activations may have fixed scales, or could
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
	views.budgeted = true // a coarser grid has more zeros, and powers are chosen by their share
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

// wide reports whether all tensors that an index scales have exponents of eight bits.
func (m *Model) wide(ix *arch.Index) bool {
	for _, u := range ix.Uses {
		w, _ := m.Weights.Weight(u.Tensor)
		if f, ok := w.DType.Format(); u.Signed && (!ok || f.ExpBits < 8) {
			return false
		}
	}
	return true
}

// connect notes which layers an index scales.
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

// descend improves one index after the other until none can be.
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

// improve gives an index the power that is best beside the others' powers; of equals the smallest.
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
