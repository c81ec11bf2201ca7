package cli

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// verifyMeterFlags are those of verify --gpu.
var verifyMeterFlags = []cli.Flag{
	&cli.BoolFlag{Name: "gpu", Usage: "measure the energy of all linear layers, before and after", DisableDefaultText: true},
	xFlag,
	&cli.StringFlag{Name: "precision", Value: "0.5%", Usage: "stop a row when its interval is ± this `SHARE` or narrower"},
	&cli.DurationFlag{Name: "time", Value: 20 * time.Second, Usage: "measure a row for no longer than this `TIME`"},
	windowFlag, deviceFlag, seedFlag,
}

// measuredEnergy is what verify --gpu found: ratios of the output to the source.
type measuredEnergy struct {
	GPU  string    `json:"gpu"`
	Role cost.Role `json:"role"`
	X    string    `json:"x"`
	// Relative is of the workload: the phases' ratios weighed by their shares. Absent until every
	// phase has been measured.
	Relative float64         `json:"relative_energy,omitempty"`
	Interval []float64       `json:"interval,omitempty"`
	Phases   []measuredPhase `json:"phases"`
}

// measuredPhase is one phase of the workload.
type measuredPhase struct {
	Phase  string        `json:"phase"`
	Share  float64       `json:"share"`
	Tokens int           `json:"m"`
	Total  *measuredRow  `json:"total,omitempty"`
	Layers []measuredRow `json:"layers,omitempty"` // a row for each kind of layer
}

// measuredRow is layers that were measured together.
type measuredRow struct {
	Kind   string `json:"kind,omitempty"`
	Layers int    `json:"count"`
	// Identical layers were not measured: there is nothing to tell them apart.
	Identical    bool            `json:"identical,omitempty"`
	Relative     float64         `json:"relative_energy,omitempty"`
	Interval     []float64       `json:"interval,omitempty"`
	RelativeTime float64         `json:"relative_time,omitempty"`
	Run          *measure.Result `json:"run,omitempty"`
}

// measured takes in what was measured, if anything was.
func (r *verifyJSON) measured(e *measuredEnergy) {
	if e == nil {
		return
	}
	if r.Energy == nil {
		r.Energy = &energyJSON{}
	}
	r.Energy.Measured = e
}

func (r *verifyJSON) measurementValid() bool {
	return r.Energy == nil || r.Energy.Measured == nil || r.Energy.Measured.valid()
}

// verifyMeter opens the machine that --gpu asks for; nil where it was not given.
func verifyMeter(c *cli.Context, o readings) (*request, measure.Machine, error) {
	if !c.Bool("gpu") {
		for _, f := range verifyMeterFlags {
			if name := f.Names()[0]; c.IsSet(name) {
				return nil, nil, usagef("--%s is about measuring: add --gpu", name)
			}
		}
		return nil, nil, nil
	}
	q, err := meterRequest(c, o)
	if err != nil {
		return nil, nil, err
	}
	if q.x, err = q.sourceFlag(c, "x", "normal(0,1)"); err != nil {
		return nil, nil, err
	}
	machine, err := openMachine(c.String("device"), q.seed)
	return q, machine, err
}

// decodeTokens is M of decode.
const decodeTokens = 16

// meterModels measures the linear layers of both models in every phase of the workload. What it
// returns holds, also beside an error, what was measured.
func meterModels(c *cli.Context, m measure.Machine, q *request, src, out *weights.Model) (*measuredEnergy, error) {
	before, err := layersOf(src, q.readings, "")
	if err != nil {
		return nil, err
	}
	var after []layer
	for _, l := range before {
		same, err := layersOf(out, q.readings, l.name)
		if err != nil {
			return nil, err
		}
		after = append(after, same...)
	}
	e := &measuredEnergy{GPU: m.Card().Info().Name, Role: q.role, X: q.x.text}
	event, end := newProgress(c)
	defer end()
	for _, p := range []measuredPhase{
		{Phase: "prefill", Share: q.workload.Prefill, Tokens: defaultTokens},
		{Phase: "decode", Share: q.workload.Decode, Tokens: decodeTokens},
	} {
		if p.Share == 0 {
			continue
		}
		e.Phases = append(e.Phases, p)
		q.m, q.cold = p.Tokens, p.Phase == "decode"
		if err := e.Phases[len(e.Phases)-1].measure(c, m, q, before, after, event); err != nil {
			return e, err
		}
	}
	e.mix()
	return e, nil
}

// measure takes the total and then, where there are several, every kind of layer.
func (p *measuredPhase) measure(c *cli.Context, m measure.Machine, q *request, before, after []layer, event func(transform.Event)) error {
	total, err := q.row(c, m, p.Phase, before, after, event)
	if total != nil {
		p.Total = total
	}
	kinds := kindsOf(before)
	if err != nil || len(kinds) < 2 {
		return err
	}
	for _, kind := range kinds {
		of := func(all []layer) (own []layer) {
			for i, l := range all {
				if before[i].kind == kind {
					own = append(own, l)
				}
			}
			return own
		}
		row, err := q.row(c, m, p.Phase+" "+kind, of(before), of(after), event)
		if row != nil {
			row.Kind = kind
			p.Layers = append(p.Layers, *row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func kindsOf(layers []layer) (kinds []string) {
	for _, l := range layers {
		if !slices.Contains(kinds, l.kind) {
			kinds = append(kinds, l.kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// row measures some layers. The card's self-test is made once.
func (q *request) row(c *cli.Context, m measure.Machine, stage string, before, after []layer, event func(transform.Event)) (*measuredRow, error) {
	row := &measuredRow{Layers: len(before)}
	if row.Identical = !slices.ContainsFunc(before, func(l layer) bool {
		return !bytes.Equal(l.w.Data, after[slices.IndexFunc(after, func(a layer) bool { return a.name == l.name })].w.Data)
	}); row.Identical {
		return row, nil
	}
	baseline, err := q.candidate("source", before, q.role == cost.Streaming)
	if err != nil {
		return nil, err
	}
	variant, err := q.candidate("output", after, q.role == cost.Streaming)
	if err != nil {
		return nil, err
	}
	r, err := q.compare(c, m, baseline, []measure.Candidate{variant}, func(e transform.Event) {
		if e.Stage == "measure" {
			e.Stage = stage
		}
		event(e)
	})
	if r == nil {
		return nil, err
	}
	q.meter.SelfTest = r.SelfTest
	v := r.Variants[0]
	row.Run, row.Relative, row.Interval, row.RelativeTime = r, v.RelativeEnergy, v.Interval, v.RelativeTime
	return row, err
}

// mix weighs the phases by their shares of the source's energy; their errors are independent.
func (e *measuredEnergy) mix() {
	var ratio, square float64
	for _, p := range e.Phases {
		switch t := p.Total; {
		case t.Identical:
			ratio += p.Share
		case t.Interval == nil:
			return
		default:
			ratio += p.Share * t.Relative
			half := p.Share * (t.Interval[1] - t.Interval[0]) / 2
			square += half * half
		}
	}
	half := math.Sqrt(square)
	e.Relative, e.Interval = ratio, []float64{ratio - half, ratio + half}
}

// valid says whether nothing speaks against the totals. Of the rows for layers, one in twenty is
// expected to miss its null.
func (e *measuredEnergy) valid() bool {
	return !slices.ContainsFunc(e.Phases, func(p measuredPhase) bool { return p.Total != nil && p.Total.Run != nil && !p.Total.Run.Valid })
}

// print writes a table for each phase.
func (e *measuredEnergy) print(w io.Writer) {
	for _, p := range e.Phases {
		memory := ""
		if p.Phase == "decode" {
			memory = " from memory in layers stacked to 32 MB"
		}
		fmt.Fprintf(w, "measured on %s, %s: %d tokens, weights %s%s, x %s\n\n", e.GPU, p.Phase, p.Tokens, e.Role, memory, e.X)
		tab := newTable("layers", "n", "energy", "95 %", "time", "power\nbefore, after", "clock, MHz\nbefore, after", "")
		for _, row := range p.Layers {
			tab.add(row.cells(row.Kind)...)
		}
		if p.Total != nil {
			tab.add(p.Total.cells("total")...)
		}
		tab.print(w)
		fmt.Fprintln(w)
		p.remarks(w)
	}
	if len(e.Phases) > 1 && e.Relative > 0 {
		fmt.Fprintf(w, "energy of the workload: %s measured, %s\n", percentOf(e.Relative, e.Interval), span(e.Interval))
	}
}

// remarks says how sure the table is.
func (p *measuredPhase) remarks(w io.Writer) {
	rows := p.Layers
	if p.Total != nil {
		rows = append(rows[:len(rows):len(rows)], *p.Total)
	}
	missed, widest := 0, 0.0
	var warnings []string
	for _, row := range rows {
		if row.Run == nil {
			continue
		}
		if !row.Run.Valid {
			missed++
		}
		widest = max(widest, row.Run.Resolvable)
		for _, text := range row.Run.Warnings {
			if !slices.Contains(warnings, text) {
				warnings = append(warnings, text)
			}
		}
	}
	if widest > 0 {
		remark(w, "null", fmt.Sprintf("a copy of the source was measured in every row; effects below %.2f %% cannot be told from none", 100*widest))
	}
	if missed > 0 {
		remark(w, "warning", fmt.Sprintf("in %s of %d, marked ?, the copy reads unlike the original, as is expected of one in twenty", plural(missed, "row", "rows"), len(rows)))
	}
	if t := p.Total; t != nil && t.Run != nil {
		remarks(w, "INVALID", t.Run.Invalid)
	}
	remarks(w, "warning", warnings)
}

func (r measuredRow) cells(name string) []string {
	cells := []string{name, count(r.Layers)}
	switch {
	case r.Identical:
		return append(cells, "identical", "–", "–", "–", "–", "")
	case len(r.Run.Variants) == 0 || r.Run.Variants[0].Blocks == 0:
		return append(cells, "–", "–", "–", "–", "–", "")
	}
	before, v := r.Run.Baseline, r.Run.Variants[0]
	clock, note := "–", ""
	if before.SMClock != nil && v.SMClock != nil {
		clock = fmt.Sprintf("%.0f, %.0f", *before.SMClock, *v.SMClock)
	}
	if before.Capped != nil && *before.Capped || v.Capped != nil && *v.Capped {
		note = "capped"
	}
	if !r.Run.Valid {
		note += "?"
	}
	return append(cells, percentOf(v.RelativeEnergy, v.Interval), span(v.Interval), percentOf(v.RelativeTime, v.TimeInterval),
		fmt.Sprintf("%.0f, %.0f W", before.Watts, v.Watts), clock, note)
}
