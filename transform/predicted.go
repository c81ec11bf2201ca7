package transform

import (
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Predicted returns a plan's predicted energy relative to the source's, over all linear layers. Each layer is
// weighted by its number of weights. The result is nil if nothing was predicted.
func Predicted(m *weights.Model, p *plan.Plan) *predict.Ratio {
	if p == nil {
		return nil
	}
	var r predict.Ratio
	sizes := sizesOf(m)
	for _, o := range p.Predictions {
		if n, ok := sizes(o.Tensor); ok && o.Before != nil && o.After != nil {
			r.Add(n, *o.Before, *o.After)
		}
	}
	return r.Known()
}

// sizesOf returns a function for the number of values of a weight, which may be quantised.
func sizesOf(m *weights.Model) func(name string) (n int, ok bool) {
	q, err := quant.Describe(m)
	if err != nil { // a model that cannot be described has no plan
		return func(string) (int, bool) { return 0, false }
	}
	return func(name string) (int, bool) {
		if w, ok := q.Weight(name); ok && w.Shape != nil {
			return weights.Info{Shape: w.Shape}.Len(), true
		}
		t, ok := m.Tensor(name)
		return t.Len(), ok
	}
}

// KindSummary summarises a plan for the linear layers of one kind.
type KindSummary struct {
	Kind    string
	Layers  int
	Weights int
	// Treatments are the tensor steps as text, joined by " + ", with the number of layers for each.
	Treatments map[string]int
	// LowestSNR is the lowest output SNR of the layers, in decibels; nil if nothing is lost, or if no SNR is known.
	LowestSNR *float64
	// Energy is the predicted energy relative to the source's; nil if nothing was predicted.
	Energy *predict.Ratio
}

// Summary summarises a plan by kind of layer, in alphabetical order. layout may be nil.
func (t Table) Summary(m *weights.Model, p *plan.Plan, layout *arch.Layout) []KindSummary {
	if p == nil {
		return nil
	}
	steps := map[string][]string{}
	for _, s := range p.Steps {
		if s.Index == "" {
			steps[s.Tensor] = append(steps[s.Tensor], t.Describe(s))
		}
	}
	kinds := map[string]*KindSummary{}
	energy, sizes := map[string]*predict.Ratio{}, sizesOf(m)
	for _, o := range p.Predictions {
		n, ok := sizes(o.Tensor)
		if !ok {
			continue
		}
		kind := layout.Kind(o.Tensor)
		g := kinds[kind]
		if g == nil {
			g = &KindSummary{Kind: kind, Treatments: map[string]int{}}
			kinds[kind], energy[kind] = g, &predict.Ratio{}
		}
		g.Layers++
		g.Weights += n
		g.Treatments[strings.Join(steps[o.Tensor], " + ")]++
		g.LowestSNR = lower(g.LowestSNR, o.LowestSNR())
		if o.Before != nil && o.After != nil {
			energy[kind].Add(n, *o.Before, *o.After)
		}
	}
	var list []KindSummary
	for kind, g := range kinds {
		g.Energy = energy[kind].Known()
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b KindSummary) int { return strings.Compare(a.Kind, b.Kind) })
	return list
}

// lower returns the lower of two ratios. Either may be nil, which is unknown.
func lower(a, b *float64) *float64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// SavesNothing classifies a plan's predicted energy. nothing is true if the plan saves at most 0.05 % of the energy,
// which tables print as 0.0 %. more is true if the plan costs over 0.05 % more energy. Exact passes usually save
// nothing in prefill.
func SavesNothing(total *predict.Ratio) (nothing, more bool) {
	const little = 0.0005 // a table shows it as 0.0 %
	return total != nil && total.Relative >= 1-little, total != nil && total.Relative > 1+little
}
