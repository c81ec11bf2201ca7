package inspect

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Values are the values of a sample of linear layers, and the bits that differ between them.
type Values struct {
	DType string // type of the operands that the tensor cores read; "mixed" if there are several
	// Shares are the shares of the values in each bin; see [Bins]. They add up to 1.
	Shares []float64
	// Toggles has one share for each bit of the operands, the lowest bit first: the share of pairs of elements in neighbouring
	// rows that differ in the bit.
	Toggles []float64
	Zeros   float64 // share of the values that are zero
	// Distinct is the number of different values in the sample of a layer, mean over layers.
	Distinct float64

	layers, n, pairs float64
	seen             bool
}

// ValuesOfKind are the values of one kind of layer. After is nil without a second model.
type ValuesOfKind struct {
	Kind    string // empty: all layers
	Layers  int
	Weights int // number of elements of all layers
	Sampled int // number of values in the sample
	Before  Values
	After   *Values
}

// Bins returns the edges of the bins in which values are counted, in units of the root mean square of the layer's sample in the
// first model. Values beyond the ends are in the outermost bins.
func Bins() []float64 {
	edges := make([]float64, bins+1)
	for i := range edges {
		edges[i] = reach * (2*float64(i)/bins - 1)
	}
	return edges
}

const (
	bins, reach   = 60, 4.0
	sampledValues = 1 << 14 // approximate number per layer
)

// Sample samples the values of a model's linear layers, and those of after's layers of the same names and shapes; after may be
// nil. The first result has all layers together. The others have one kind each, in the order of the kinds' first layers. Layers
// whose values cannot be read are left out. If none can be read, the result is empty. The sample is the same in every call: pairs
// of neighbouring rows at equal distances.
func Sample(ctx context.Context, before, after *weights.Model, family *arch.Family, workers int) ([]ValuesOfKind, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	layout, err := arch.Resolve(before, family)
	if err != nil && !errors.Is(err, arch.ErrUnknownFamily) {
		return nil, err
	}
	list, err := samples(before, after, layout)
	if err != nil {
		return nil, err
	}
	err = parallel.Run(ctx, len(list), workers, func(_ context.Context, i int) error { return list[i].take() })
	if err != nil {
		return nil, err
	}
	all := []ValuesOfKind{{}}
	for _, s := range list {
		at := slices.IndexFunc(all, func(k ValuesOfKind) bool { return k.Kind == s.kind })
		if at < 0 {
			at = len(all)
			all = append(all, ValuesOfKind{Kind: s.kind})
		}
		all[0].add(s)
		all[at].add(s)
	}
	if len(list) == 0 {
		return nil, nil
	}
	for i := range all {
		all[i].Before.finish()
		if all[i].After != nil {
			all[i].After.finish()
		}
	}
	return all, nil
}

// sample is the sample of one layer, in one model or in two.
type sample struct {
	kind    string
	weights [2]*quant.Weight // before and after; the second may be nil
	values  [2]Values
	stride  int // distance between pairs of rows
	pairs   int
}

// samples returns the samples of all layers that can be read.
func samples(before, after *weights.Model, layout *arch.Layout) (list []*sample, err error) {
	groups := [2]*quant.Set{}
	for i, m := range []*weights.Model{before, after} {
		if m == nil {
			continue
		}
		d, err := quant.Describe(m)
		if err != nil {
			return nil, err
		}
		groups[i] = quant.Group(m, d)
	}
	for _, w := range groups[0].All {
		if !readable(w, layout) {
			continue
		}
		s := &sample{kind: layout.Kind(w.Name), weights: [2]*quant.Weight{w, nil}}
		if groups[1] != nil {
			other, ok := groups[1].Weight(w.Name)
			if !ok || !slices.Equal(other.Shape, w.Shape) || !known(other) {
				continue
			}
			s.weights[1] = other
		}
		s.pairs = min(w.Rows/2, max(2, sampledValues/2/w.Cols))
		s.stride = w.Rows / max(1, s.pairs)
		list = append(list, s)
	}
	return list, nil
}

// readable reports whether a weight belongs to a linear layer and its values can be read.
func readable(w *quant.Weight, layout *arch.Layout) bool {
	if w.Adapter || w.Rows < 2 || w.Cols < 1 || !known(w) {
		return false
	}
	if w.Quantised != nil {
		return layout.IsLinearWeight(w.Quantised)
	}
	return layout.IsLinear(w.Info())
}

func known(w *quant.Weight) bool {
	_, ok := w.DType.Format()
	return ok && (w.Quantised == nil || w.Quantised.CanRead() == nil)
}

// take reads the sample.
func (s *sample) take() error {
	scale := 0.0
	for i, w := range s.weights {
		if w == nil {
			continue
		}
		read := func() error { return s.values[i].read(w, s, &scale) }
		if err := weights.Guard(w.Parts[0].File, read); err != nil {
			return err
		}
	}
	return nil
}

// read counts the sampled rows of a weight. scale is the root mean square of the first model's values, or 0 if it is not known
// yet.
func (v *Values) read(w *quant.Weight, s *sample, scale *float64) error {
	if w.Quantised != nil {
		if err := w.Quantised.Check(); err != nil {
			return err
		}
	}
	var values []float32
	distinct := map[uint32]struct{}{}
	for p := range s.pairs {
		rows := w.ReadRows(nil, p*s.stride, 2)
		f, _ := w.DType.Format()
		pair := make([]float32, 2*w.Cols)
		f.Decode(pair, rows)
		values = append(values, pair...)
		operand := f
		if w.Quantised != nil {
			var err error
			if rows, err = w.Quantised.OperandRows(p*s.stride, 2); err != nil {
				return err
			}
			operand, _ = w.Quantised.Operand().Format()
		}
		v.DType = operand.DType.String()
		if v.Toggles == nil {
			v.Toggles = make([]float64, operand.Bits)
		}
		v.toggle(operand, rows, w.Cols)
	}
	if *scale == 0 {
		*scale = rootMeanSquare(values)
	}
	v.Shares = make([]float64, bins)
	for _, x := range values {
		distinct[math.Float32bits(x+0)] = struct{}{} // −0 counts as 0
		if x == 0 {
			v.Zeros++
		}
		if at := (float64(x) / *scale / reach + 1) / 2 * bins; at == at { // not a NaN
			v.Shares[int(min(max(at, 0), bins-1))]++
		}
	}
	v.n, v.layers, v.Distinct, v.seen = float64(len(values)), 1, float64(len(distinct)), true
	return nil
}

// toggle counts the bits that differ between two rows.
func (v *Values) toggle(f weights.Format, rows []byte, cols int) {
	counts := [32]int{}
	for k := range cols {
		for d := f.Elem(rows, k) ^ f.Elem(rows, cols+k); d != 0; d &= d - 1 {
			counts[bits.TrailingZeros32(d)]++
		}
	}
	for b := range v.Toggles {
		v.Toggles[b] += float64(counts[b])
	}
	v.pairs += float64(cols)
}

func rootMeanSquare(values []float32) float64 {
	sum, n := 0.0, 0
	for _, x := range values {
		if d := float64(x); d-d == 0 {
			sum, n = sum+d*d, n+1
		}
	}
	if sum == 0 {
		return 1
	}
	return math.Sqrt(sum / float64(n))
}

// add adds a layer.
func (k *ValuesOfKind) add(s *sample) {
	w := s.weights[0]
	k.Layers, k.Weights, k.Sampled = k.Layers+1, k.Weights+w.Rows*w.Cols, k.Sampled+2*s.pairs*w.Cols
	k.Before.add(&s.values[0])
	if s.weights[1] != nil {
		if k.After == nil {
			k.After = &Values{}
		}
		k.After.add(&s.values[1])
	}
}

func (v *Values) add(o *Values) {
	if !v.seen {
		v.DType, v.Shares, v.Toggles, v.seen = o.DType, make([]float64, bins), make([]float64, len(o.Toggles)), true
	}
	if v.DType != o.DType {
		v.DType, v.Toggles = "mixed", nil // bits of different types cannot be compared
	}
	for i, n := range o.Shares {
		v.Shares[i] += n
	}
	for i := range v.Toggles {
		v.Toggles[i] += o.Toggles[i]
	}
	v.Zeros, v.Distinct = v.Zeros+o.Zeros, v.Distinct+o.Distinct
	v.layers, v.n, v.pairs = v.layers+o.layers, v.n+o.n, v.pairs+o.pairs
}

// finish turns counts into shares and means.
func (v *Values) finish() {
	counted := 0.0
	for _, n := range v.Shares {
		counted += n
	}
	for i := range v.Shares {
		v.Shares[i] /= max(1, counted)
	}
	for i := range v.Toggles {
		v.Toggles[i] /= v.pairs
	}
	v.Zeros, v.Distinct = v.Zeros/v.n, v.Distinct/v.layers
}

// PerValue returns the number of bits that differ between neighbouring rows' elements; NaN if it is unknown.
func (v *Values) PerValue() float64 {
	if v.Toggles == nil {
		return math.NaN()
	}
	sum := 0.0
	for _, t := range v.Toggles {
		sum += t
	}
	return sum
}
