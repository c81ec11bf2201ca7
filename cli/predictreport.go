package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// predictReport is what predict found.
type predictReport struct {
	Predictions []predicted `json:"predictions"`

	GPU string `json:"-"`
}

// predicted is a source.
type predicted struct {
	Name string `json:"name"`
	cost.Prediction
	// OverW is the energy over that of --w, where it was given.
	OverW *ratio `json:"over_w,omitempty"`
	// Problem is absent where the layers differ.
	Problem *gemm.Problem `json:"problem,omitempty"`
	Count   int           `json:"count"` // layers
	Cold    bool          `json:"cold"`
	X       string        `json:"x"`
	Layers  []part        `json:"layers,omitempty"` // where they were asked for

	first gemm.Problem
}

func (r *predictReport) add(f *forecast, s source, parts []part) {
	first := parts[0].Problem
	p := predicted{Name: s.text, Prediction: sumOf(parts), Problem: &first, Count: len(parts), Cold: f.cold, X: f.xText(first.Type), first: first}
	for _, part := range parts {
		if part.Problem != first {
			p.Problem = nil
		}
	}
	if f.layers {
		p.Layers = parts
	}
	if f.compared && len(r.Predictions) > 0 {
		w, after := r.Predictions[0].Prediction, p.Prediction
		if s.path != "" && f.sources[0].path != "" {
			after = likeRandom(after, w)
		}
		p.OverW = &ratio{}
		p.OverW.add(1, estimateOf(w), estimateOf(after))
	}
	r.Predictions = append(r.Predictions, p)
}

// likeRandom is p over the random operands that like is over: a model that was multiplied by powers of two
// is over others than its source.
func likeRandom(p, like cost.Prediction) cost.Prediction {
	if p.Joules == nil || like.Joules == nil || p.Relative == 0 {
		return p
	}
	by := *p.Joules / p.Relative / (*like.Joules / like.Relative)
	p.Relative *= by
	p.Interval[0] *= by
	p.Interval[1] *= by
	return p
}

func estimateOf(p cost.Prediction) cost.Estimate {
	return cost.Estimate{Relative: p.Relative, Interval: p.Interval, Calibration: p.Calibration}
}

func (r *predictReport) write(c *cli.Context, f *forecast) error {
	w := c.App.Writer
	switch {
	case c.Bool("json") && len(r.Predictions) == 1:
		return term.JSON(w, r.Predictions[0])
	case c.Bool("json"):
		return term.JSON(w, r)
	}
	r.print(w, f)
	return nil
}

func (r *predictReport) print(w io.Writer, f *forecast) {
	all := r.Predictions
	fmt.Fprintf(w, "predicted for %s: %s\n\n", r.GPU, r.title(f))
	head := []string{"weights", "energy", "95 %", "time", "energy\nper pass", "power", "clock"}
	if f.compared {
		head = append(head, "energy\nover --w")
	}
	tab := term.NewTable(head...)
	for _, p := range all {
		over := "–"
		if p.OverW != nil {
			over = plusMinus(p.OverW)
		}
		tab.Add(append(predictionCells(p.Name, p.Prediction), over)[:len(tab.Head)]...)
		for _, l := range p.Layers {
			tab.Add(append(predictionCells("  "+l.Layer, l.Prediction), "")[:len(tab.Head)]...)
		}
	}
	tab.Print(w)
	fmt.Fprintln(w)
	term.Remark(w, "predicted", "nothing was measured; energy and time are over those of random normal operands of the same scale")
	term.Remark(w, "calibration", all[0].Calibration)
	term.Remarks(w, "warning", r.warnings())
}

// warnings of all sources, each once: with the names of those that it is about, unless it is about all.
func (r *predictReport) warnings() (list []string) {
	var b term.ByKind
	for _, p := range r.Predictions {
		for _, text := range p.Warnings {
			b.Add(text, p.Name)
		}
	}
	for _, text := range b.Texts {
		if about := b.Tensors[text]; len(about) < len(r.Predictions) {
			text = strings.Join(about, ", ") + ": " + text
		}
		list = append(list, text)
	}
	return list
}

// title says what is multiplied.
func (r *predictReport) title(f *forecast) string {
	p := r.Predictions[0]
	what := p.first.String()
	if p.Count > 1 {
		what = fmt.Sprintf("%d layers, %d tokens, %v %v", p.Count, p.first.M, p.first.Type, f.role)
	}
	for _, q := range r.Predictions[1:] {
		if q.Count != p.Count || q.first != p.first {
			what = "different products, " + f.role.String()
		}
	}
	if f.cold {
		what += ", weights from memory"
	}
	return what + ", x " + p.X
}

// plusMinus writes a ratio as a change, with half its interval.
func plusMinus(r *ratio) string {
	return signed(100*(r.Relative-1), 1) + fmt.Sprintf(" ± %.1f %%", 50*(r.Interval[1]-r.Interval[0]))
}

func predictionCells(name string, p cost.Prediction) []string {
	known := func(v *float64, write func(float64) string) string {
		if v == nil {
			return "–"
		}
		return write(*v)
	}
	return []string{name, term.Change(p.Relative), signed(100*(p.Interval[0]-1), 1) + " … " + signed(100*(p.Interval[1]-1), 1) + " %", term.Change(p.RelativeTime),
		known(p.Joules, threeDigits),
		known(p.Watts, func(v float64) string { return fmt.Sprintf("%.0f W", v) }),
		known(p.Clock, func(v float64) string { return fmt.Sprintf("%.0f MHz", v) })}
}

// threeDigits writes an energy, no finer than it can be predicted.
func threeDigits(joules float64) string {
	unit := "J"
	switch {
	case joules < 1e-3:
		joules, unit = 1e6*joules, "µJ"
	case joules < 1:
		joules, unit = 1e3*joules, "mJ"
	}
	digits := 2
	for limit := 10.0; digits > 0 && joules >= limit; limit *= 10 {
		digits--
	}
	return fmt.Sprintf("%.*f %s", digits, joules, unit)
}
