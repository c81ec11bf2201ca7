package pass

import (
	"context"
	"errors"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// What tests look at besides the exported API.
var (
	RoundBlock = roundBlock
	CheckFolds = checkFolds
)

// RunBorder is the price of a border.
const RunBorder = runBorder

// SmallestTiles is smallestTiles; within is told the sum of squares and the number of values.
func SmallestTiles(ctx context.Context, l *Layer, tile [2]int, within func(sum, n float64) bool) (z Zeros, sum, n float64, err error) {
	z, taken, err := smallestTiles(ctx, l, tile, func(s square) bool { return within(s.sum, s.n) })
	return z, taken.sum, taken.n, err
}

// ChooseRuns of zeros in a row.
func ChooseRuns(row []float32, worth float64) []bool {
	var m runMask
	return m.choose(row, worth)
}

// Expected are the passes that a preview is of.
func Expected(choices []Choice) []Choice {
	return (&Model{Context: &Context{Choices: choices}}).expected()
}

// EachPreview hands out what m's lossy passes are expected to make of every weight that an index runs through.
func EachPreview(ctx context.Context, m *Model, fn func(p *program.Program, row func(int) []byte)) error {
	views := m.previews()
	for _, ix := range m.Layout.Indices {
		for _, u := range m.uses(ix) {
			p, err := views.of(ctx, u.w, u.layer)
			if err != nil {
				return err
			}
			fn(p, rowsOf(p))
		}
	}
	return nil
}

// CommonExponents are those that the pass scale chooses, one for all labels of each index.
type CommonExponents struct {
	Indices []*arch.Index
	Power   []int // by index
	chooser *exponentChooser
}

// MostOctaves bounds a power.
const MostOctaves = mostOctaves

// NewCommonExponents looks at all layers with the exponents that labels have, by index.
func NewCommonExponents(ctx context.Context, m *Model, exps map[string][]int) (*CommonExponents, error) {
	v, err := m.exponentChooser(ctx, exps)
	return &CommonExponents{v.indices, v.power, v}, err
}

// Descend chooses.
func (c *CommonExponents) Descend() { c.chooser.descend() }

// Cost of all layers in toggles, and with the penalty of changing exponents.
func (c *CommonExponents) Cost() (toggles, all float64) {
	for i := range c.chooser.layers {
		toggles += c.chooser.layers[i].toggles(c.Power)
		all += c.chooser.layers[i].shiftPenalty(c.Power)
	}
	return toggles, toggles + all
}

// Ranges of rows.
func (s *Sample) Ranges() [][2]int { return s.ranges }

// ScaleUse is what scale learns of one matrix along an index: by label the sum of ±log2|w| and the number of values in
// it, and the exponents that all values take.
type ScaleUse struct {
	Sums, Numbers []float64
	Exps          []int
}

// ScaleUses hands out what scale learns of every matrix, and the same from its elements one by one. exps are the
// exponents that are asked for, by label.
func ScaleUses(ctx context.Context, m *Model, exps func(labels int) []int, fn func(tensor string, axis int, got, want ScaleUse)) error {
	for _, ix := range m.Layout.Indices {
		for _, u := range signedUses(m.uses(ix)) {
			asked := exps(ix.Len)
			got := ScaleUse{make([]float64, ix.Len), make([]float64, ix.Len), slices.Clone(asked)}
			want := ScaleUse{make([]float64, ix.Len), make([]float64, ix.Len), slices.Clone(asked)}
			err := errors.Join(u.sum(ctx, got.Sums, got.Numbers), u.limit(ctx, got.Exps),
				u.sumEach(ctx, want.Sums, want.Numbers), u.each(ctx, u.lower(want.Exps)))
			if err != nil {
				return err
			}
			fn(u.w.Name, u.Axis, got, want)
		}
	}
	return nil
}
