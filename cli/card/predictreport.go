package card

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// write prints predictions for a GPU and writes the file that -o names.
func (f *predictRequest) write(c *cli.Context, r *predict.Report, gpu string) error {
	var err error
	switch {
	case c.Bool("json"):
		err = term.JSON(c.App.Writer, f.document(r))
	case c.Bool("csv"):
		if err = writeCSV(c.App.Writer, predictedRows(r, f.layers)); err == nil {
			f.caution(c.App.ErrWriter, r)
		}
	default:
		f.print(c.App.Writer, r, gpu)
	}
	if err != nil || c.String("output") == "" {
		return err
	}
	return f.output(c, r, gpu)
}

// document is the output of predict --json.
func (f *predictRequest) document(r *predict.Report) predictDocument {
	shown := predict.Report{Predictions: slices.Clone(r.Predictions)}
	for i := range shown.Predictions {
		if !f.layers {
			shown.Predictions[i].Layers = nil
		}
	}
	d := predictDocument{Report: &shown}
	if len(shown.Predictions) == 1 {
		d.Prediction = &shown.Predictions[0]
	}
	return d
}

// predictDocument is the output of predict --json. For a single source, the fields of its prediction are also at the
// top level.
type predictDocument struct {
	*predict.Prediction
	*predict.Report
}

func (f *predictRequest) print(w io.Writer, r *predict.Report, gpu string) {
	all := r.Predictions
	fmt.Fprintf(w, "predicted for %s: %s\n\n", printable.Quote(gpu), printable.Quote(f.title(r.Predictions)))
	head := []string{"weights", "energy", "95 %", "time", "energy\nper pass", "power", "clock"}
	if f.compared {
		head = append(head, "energy\nover --w")
	}
	tab := term.NewTable(head...)
	for _, p := range all {
		over := "–"
		if p.Over != nil {
			over = plusMinus(p.Over)
		}
		tab.Add(append(predictionCells(p.Name, p.Prediction), over)[:len(tab.Head)]...)
		for _, l := range p.Layers {
			if !f.layers {
				break
			}
			tab.Add(append(predictionCells("  "+l.Layer, l.Prediction), "")[:len(tab.Head)]...)
		}
	}
	tab.Print(w)
	fmt.Fprintln(w)
	baseline := "random normal operands of the same scale"
	if f.compared && f.sources[0].Path != "" {
		baseline += "; for files, this is the scale of --w"
	}
	term.Remark(w, "predicted", "nothing was measured; energy and time are relative to "+baseline)
	if f.compared {
		term.Remark(w, "over --w", "energy relative to --w, with its 95 % interval, as in the reports of convert and verify. The column 95 % is the interval of the energy relative to random operands")
	}
	term.Remark(w, "calibration", all[0].Calibration)
	if text := f.belowCap(all); text != "" {
		term.Remark(w, "below the power cap", text)
	}
	kernels := kernelsOf(all)
	for _, text := range kernels {
		term.Remark(w, "kernel", text+" (assumed)")
	}
	if f.kernel != "" && len(kernels) == 0 {
		term.Remark(w, "note", fmt.Sprintf("--kernel %s changes nothing: no weights are quantised", f.kernel))
	}
	for _, p := range all {
		if p.Coverage != nil {
			term.Remark(w, "note", p.Name+" "+p.Coverage.String())
		}
	}
	f.caution(w, r)
}

// caution prints remarks about options that may be missing, such as --cold or --workload. A CSV table has no place
// for these remarks.
func (f *predictRequest) caution(w io.Writer, r *predict.Report) {
	if f.onChip(r) {
		term.Remark(w, "note", "the prediction assumes that the weights are in the card's cache; if they are read from memory, as in decode, add --cold")
	}
	for _, made := range f.forDecode() {
		term.Remark(w, "hint", fmt.Sprintf("%s was converted for %s: add --workload decode to predict decode", made.path, made.workload))
	}
	term.Remarks(w, "warning", r.Warnings())
}

// onChip reports whether a product of few tokens is predicted with weights on chip only by default.
func (f *predictRequest) onChip(r *predict.Report) bool {
	return !f.chosen && slices.ContainsFunc(r.Predictions, func(p predict.Prediction) bool {
		return slices.ContainsFunc(p.Layers, func(l predict.Layer) bool { return l.Problem.M <= probe.DecodeRows })
	})
}

// forDecode lists the sources that were converted for decode, if no flag chooses the workload.
func (f *predictRequest) forDecode() (list []madeFor) {
	if f.chosen || f.phased {
		return nil
	}
	for _, path := range f.models() {
		man, err := plan.ReadManifest(path)
		if err == nil && man.Plan != nil && man.Plan.Request.Workload.Decode > man.Plan.Request.Workload.Prefill {
			list = append(list, madeFor{path, man.Plan.Request.Workload})
		}
	}
	return list
}

// madeFor is a conversion, and the workload that it was made for.
type madeFor struct {
	path     string
	workload cost.Workload
}

// belowCap describes the change of each source where the card's mean power is below its limit, if it differs from the
// table. The result is empty if the calibration cannot predict the change.
func (f *predictRequest) belowCap(all []predict.Prediction) string {
	const near = 0.005
	var list []string
	known, others := false, 0
	for i, p := range all {
		b := p.BelowCap
		known = known || b != nil
		if b == nil || max(math.Abs(b.Relative-p.Relative), math.Abs(b.RelativeTime-p.RelativeTime)) <= near {
			if i > 0 || !f.compared {
				others++
			}
			continue
		}
		interval := ""
		if b.Interval != nil {
			interval = " (95 %: " + term.Signed(100*(b.Interval[0]-1), 1) + " … " + term.Signed(100*(b.Interval[1]-1), 1) + " %)"
		}
		list = append(list, fmt.Sprintf("energy of %s %s%s, time %s", p.Name, term.Change(b.Relative), interval, term.Change(b.RelativeTime)))
	}
	const when = "on a lightly loaded card (prefill below its power cap)"
	const asTable = "as in the table, within half a percentage point"
	switch {
	case !known:
		return ""
	case list == nil:
		return when + ", energy and time change " + asTable
	}
	if others > 0 {
		list = append(list, "the other sources "+asTable)
	}
	return when + ", relative to random operands: " + strings.Join(list, "; ") + "; not tested by a measurement. On a fully loaded card, the table applies"
}

// kernelsOf lists the kernels of all sources without repetition.
func kernelsOf(all []predict.Prediction) (list []string) {
	for _, p := range all {
		for _, k := range p.Kernels {
			if !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
	}
	return list
}

// title describes the products.
func (f *predictRequest) title(all []predict.Prediction) string {
	p := all[0]
	first := p.Layers[0].Problem
	what := first.String()
	if p.Count > 1 {
		what = fmt.Sprintf("%d layers, %d tokens", p.Count, first.M)
		if len(p.Kernels) == 0 {
			what += fmt.Sprintf(", %v %v", first.Type, f.Role)
		}
	}
	for _, q := range all[1:] {
		if q.Count != p.Count || q.Layers[0].Problem != first {
			what = "different products, " + f.Role.String()
		}
	}
	if f.cold {
		what += ", weights from memory"
	}
	return what + ", x " + p.X
}

// plusMinus formats a ratio as a change with half the width of its interval.
func plusMinus(r *predict.Ratio) string {
	return term.Signed(100*(r.Relative-1), 1) + fmt.Sprintf(" ± %.1f %%", 50*(r.Interval[1]-r.Interval[0]))
}

func predictionCells(name string, p cost.Prediction) []string {
	known := func(v *float64, write func(float64) string) string {
		if v == nil {
			return "–"
		}
		return write(*v)
	}
	return []string{name, term.Change(p.Relative), term.Signed(100*(p.Interval[0]-1), 1) + " … " + term.Signed(100*(p.Interval[1]-1), 1) + " %", term.Change(p.RelativeTime),
		known(p.Joules, threeDigits),
		known(p.Watts, func(v float64) string { return fmt.Sprintf("%.0f W", v) }),
		known(p.Clock, func(v float64) string { return fmt.Sprintf("%.0f MHz", v) })}
}

// threeDigits formats an energy in joules to three digits, the precision of predictions.
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
