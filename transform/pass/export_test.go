package pass

import (
	"context"
	"errors"
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Unexported names for tests.
var (
	RoundBlock = roundBlock
	CheckFolds = checkFolds
)

// RunBorder is the price of a border.
const RunBorder = runBorder

// SmallestTiles is smallestTiles. within gets the sum of squares and the number of values.
func SmallestTiles(ctx context.Context, l *Layer, tile [2]int, within func(sum, n float64) bool) (z Zeros, sum, n float64, err error) {
	z, taken, err := smallestTiles(ctx, l, tile, func(s square) bool { return within(s.sum, s.n) })
	return z, taken.sum, taken.n, err
}

// ChooseRuns returns the zeros in a row by runMask.
func ChooseRuns(row []float32, worth float64) []bool {
	var m runMask
	return m.choose(row, worth)
}

// Expected returns the passes that a preview shows.
func Expected(choices []Choice) []Choice {
	return (&Model{Context: &Context{Choices: choices}}).expected()
}

// EachPreview calls fn with the preview of every weight that an index runs through.
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

// CommonExponents are the common exponents that the pass scale chooses, one for each index.
type CommonExponents struct {
	Indices []*arch.Index
	Power   []int // by index
	chooser *exponentChooser
}

// MostOctaves is the largest magnitude of a power.
const MostOctaves = mostOctaves

// NewCommonExponents prepares the choice for all layers. exps has the exponents of labels, by index.
func NewCommonExponents(ctx context.Context, m *Model, exps map[string][]int) (*CommonExponents, error) {
	v, err := m.exponentChooser(ctx, exps)
	return &CommonExponents{v.indices, v.power, v}, err
}

// Descend chooses the powers.
func (c *CommonExponents) Descend() { c.chooser.descend() }

// TiedPower returns the power of an index that no layer uses, so that all powers cost the same. The index starts with
// the power was.
func TiedPower(was int) int {
	v := &exponentChooser{power: []int{was}, uses: make([][]int, 1)}
	v.improve(0)
	return v.power[0]
}

// Cost returns the toggles of all layers, and the toggles with the penalty of changing exponents.
func (c *CommonExponents) Cost() (toggles, all float64) {
	for i := range c.chooser.layers {
		toggles += c.chooser.layers[i].toggles(c.Power)
		all += c.chooser.layers[i].shiftPenalty(c.Power)
	}
	return toggles, toggles + all
}

// Ranges returns the sample's ranges of rows.
func (s *Sample) Ranges() [][2]int { return s.ranges }

// ScaleUse holds what scale computes for one matrix along an index: for each label, the sum of ±log2|w|, the number
// of values, and the limited exponent.
type ScaleUse struct {
	Sums, Numbers []float64
	Exps          []int
}

// ScaleUses calls fn with the ScaleUse of every matrix, and with the same computed element by element. exps returns
// the requested exponents, by label.
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

// SketchBytes returns the largest size of a sketch of some matrices.
func SketchBytes(m *Model, matrices ...order.Use) (bytes int, large bool) {
	var uses []*use
	for _, u := range matrices {
		uses = append(uses, &use{Use: u})
	}
	return m.sketchBytes(uses)
}
