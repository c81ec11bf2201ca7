package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// kindsDrawn is the largest number of kinds of layers that get their own charts.
const kindsDrawn = 16

// Styles of a model before and after. Both stay visible if the lines coincide.
var (
	beforeStyle = chart.Style{Colour: 2}
	afterStyle  = chart.Style{Colour: 3, Dashes: 1}
)

// addValues adds the distribution of sampled values and the toggle rate of each bit, before and after. Without a
// sample, it adds nothing.
func addValues(p *page.Page, all []inspect.ValuesOfKind) {
	if len(all) == 0 {
		return
	}
	compared, sampled := all[0].After != nil, all[0].Sampled
	s := p.Section("Values and bits")
	fmt.Fprintf(s, "These figures are of a sample: %s of %s in linear layers. The sample has pairs of neighbouring rows, at equal distances.\n",
		term.Plural(sampled, "value", "values"), term.Plural(all[0].Weights, "weight", "weights"))
	s.Picture(histogram(all[0]), "Distribution of the values of all linear layers, each relative to its layer's root mean square.")
	if c, ok := toggling(all[0]); ok {
		s.Picture(c, togglingCaption)
	}
	valuesTable(all, compared).Print(s)
	term.Remark(s, "toggles", "bits per value that differ from the value in the previous row of the operand that the tensor cores read")
	term.Remark(s, "distinct", "number of different values in a layer's sample, mean over the layers")
	if kinds := all[1:]; len(kinds) > 1 {
		most := slices.Clone(kinds)
		slices.SortStableFunc(most, func(a, b inspect.ValuesOfKind) int { return cmp.Compare(b.Weights, a.Weights) })
		title := "Each kind of layer"
		if len(most) > kindsDrawn {
			most, title = most[:kindsDrawn], fmt.Sprintf("The %d largest kinds of layers", kindsDrawn)
		}
		inner := s.Folded(title)
		for _, k := range most {
			inner.Picture(histogram(k), k.Kind+": distribution of the values.")
			if c, ok := toggling(k); ok {
				inner.Picture(c, k.Kind+": bits that toggle.")
			}
		}
	}
	p.Origin("distributions and toggles", report.Computed, "a sample of the stored weights")
}

const togglingCaption = "Share of the pairs of values in neighbouring rows that differ in each bit. The sign is the highest bit."

// histogram draws the distribution of values.
func histogram(k inspect.ValuesOfKind) chart.Chart {
	edges := inspect.Bins()
	line := func(name string, v *inspect.Values, style chart.Style) chart.Line {
		l := chart.Line{Name: name, Style: style}
		for i, share := range v.Shares {
			l.X, l.Y = append(l.X, edges[i], edges[i+1]), append(l.Y, 100*share, 100*share)
		}
		return l
	}
	scale := "value / root mean square"
	if k.After != nil {
		scale += " before conversion"
	}
	panel := chart.Panel{Title: kindName(k), X: chart.Axis{Label: scale}, Y: chart.Axis{Label: "% of values", With: []float64{0}}, Height: 180}
	return chart.Chart{Title: kindName(k) + ": distribution of values", Panels: []chart.Panel{beforeAndAfter(panel, k, line)}}
}

// toggling draws how often each bit toggles. ok is false if the toggle rates of bits are unknown.
func toggling(k inspect.ValuesOfKind) (c chart.Chart, ok bool) {
	line := func(name string, v *inspect.Values, style chart.Style) chart.Line {
		style.Marker = 1 + style.Dashes
		l := chart.Line{Name: name + ", " + v.DType, Style: style}
		for bit, share := range v.Toggles {
			l.X, l.Y = append(l.X, float64(bit)), append(l.Y, 100*share)
		}
		ok = ok || len(l.X) > 0
		return l
	}
	panel := chart.Panel{Title: kindName(k), X: chart.Axis{Label: "bit of the operand, the lowest first"}, Y: chart.Axis{Label: "% of pairs", With: []float64{0, 50}}, Height: 180}
	c = chart.Chart{Title: kindName(k) + ": bits that toggle", Panels: []chart.Panel{beforeAndAfter(panel, k, line)}}
	return c, ok
}

func kindName(k inspect.ValuesOfKind) string { return cmp.Or(k.Kind, "all linear layers") }

// beforeAndAfter adds a line for each sampled model. A single model needs no name.
func beforeAndAfter(p chart.Panel, k inspect.ValuesOfKind, line func(name string, v *inspect.Values, style chart.Style) chart.Line) chart.Panel {
	p.Lines = append(p.Lines, line("before", &k.Before, beforeStyle))
	if k.After == nil {
		p.Lines[0].Name = ""
		return p
	}
	p.Lines = append(p.Lines, line("after", k.After, afterStyle))
	return p
}

// valuesTable has a row for each kind of layer, and one for all.
func valuesTable(all []inspect.ValuesOfKind, compared bool) *term.Table {
	heads := []string{"layers", "n", "toggles", "zeros", "distinct"}
	if compared {
		heads = []string{"layers", "n", "toggles\nbefore", "toggles\nafter", "zeros\nbefore", "zeros\nafter", "distinct\nbefore", "distinct\nafter"}
	}
	tab := term.NewTable(heads...)
	add := func(name string, k inspect.ValuesOfKind) {
		row := []string{name, term.Count(k.Layers)}
		for _, of := range []func(v *inspect.Values) string{
			func(v *inspect.Values) string { return number("%.2f", v.PerValue()) },
			func(v *inspect.Values) string { return number("%.1f %%", 100*v.Zeros) },
			func(v *inspect.Values) string { return term.Count(int(v.Distinct + 0.5)) },
		} {
			if row = append(row, of(&k.Before)); k.After != nil {
				row = append(row, of(k.After))
			}
		}
		tab.Add(row...)
	}
	for _, k := range all[1:] {
		add(k.Kind, k)
	}
	if len(all) > 2 {
		add("total", all[0])
	}
	return tab
}

// number formats a number; "–" if unknown.
func number(format string, v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf(format, v)
}
