package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// verifyMeterFlags are those of verify --gpu.
var verifyMeterFlags = []cli.Flag{
	&cli.BoolFlag{Name: "gpu", Usage: "measure the energy of all linear layers, before and after", DisableDefaultText: true},
	&cli.BoolFlag{Name: "total", Usage: "measure all layers together alone, no row for each kind", DisableDefaultText: true},
	xFlag,
	&cli.StringFlag{Name: "precision", Value: "0.5%", Usage: "stop a row when its interval is ± this `SHARE`", DefaultText: "0.5%"},
	&cli.DurationFlag{Name: "time", Value: 30 * time.Second, Usage: "begin no block of a row that would end after this `TIME`"},
	windowFlag, devicesFlag, seedFlag, componentsFlag, benchFlag,
}

// energyReport is what verify --gpu found, on one card or on several.
type energyReport interface {
	print(w io.Writer)
	bench(w io.Writer)
	// holds says whether nothing speaks against the totals, and they are as precise as was asked.
	holds() bool
}

// measuredEnergy is what verify --gpu found on a card: ratios of the output to the source.
type measuredEnergy struct {
	GPU       string    `json:"gpu"`
	Simulated bool      `json:"simulated,omitempty"`
	Role      cost.Role `json:"role"`
	X         string    `json:"x"`
	// Relative is of the workload: the phases' ratios weighed by their shares. Absent until every
	// phase has been measured.
	Relative float64         `json:"relative_energy,omitempty"`
	Interval []float64       `json:"interval,omitempty"`
	Phases   []measuredPhase `json:"phases"`
	// Invalid is what speaks against the totals, but for a null comparison that chance may miss.
	Invalid []string `json:"invalid,omitempty"`
	// Skipped layers are no matrices that a GPU multiplies as they are.
	Skipped []string `json:"not_measured,omitempty"`

	strict   bool   // the precision was asked for
	card     string // among several; "" is the only one
	unsigned string // why no phase has components
}

// measuredPhase is one phase of the workload.
type measuredPhase struct {
	Phase  string  `json:"phase"`
	Share  float64 `json:"share"`
	Tokens int     `json:"m"`
	// TooLarge models have no room on the card as a whole: the total is put together from the rows.
	TooLarge bool          `json:"too_large,omitempty"`
	Total    *measuredRow  `json:"total,omitempty"`
	Layers   []measuredRow `json:"layers,omitempty"` // a row for each kind of layer
	// Components are where the total's power goes, predicted; absent where that is not known of the card.
	Components *signature `json:"components,omitempty"`
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
func (r *verifyJSON) measured(e energyReport) {
	if e == nil {
		return
	}
	if r.Energy == nil {
		r.Energy = &energyJSON{}
	}
	r.Energy.Measured = e
}

func (r *verifyJSON) measurementHolds() bool {
	return r.Energy == nil || r.Energy.Measured == nil || r.Energy.Measured.holds()
}

// layerRequest is what verify --gpu is asked for.
type layerRequest struct {
	request
	components *components // of the first card
}

// verifyMeter opens the cards that --gpu asks for; none where it was not given.
func verifyMeter(c *cli.Context, o readings) (*layerRequest, machines, error) {
	if !c.Bool("gpu") {
		for _, f := range verifyMeterFlags {
			if name := f.Names()[0]; name != "gpu" && c.IsSet(name) {
				return nil, nil, usagef("--%s is about measuring: add --gpu", name)
			}
		}
		return nil, nil, nil
	}
	if c.Bool("json") && c.Bool("bench") {
		return nil, nil, usagef("--json and --bench exclude each other")
	}
	q, err := meterRequest(c, o)
	if err != nil {
		return nil, nil, err
	}
	if err := readSource(c, "x", &q.x); err != nil {
		return nil, nil, err
	}
	cards, err := openMachines(c.String("device"), q.seed)
	if err != nil {
		return nil, nil, err
	}
	parts, err := componentsOf(c.String("components"), cards[0].Card().Info().Name)
	if err != nil {
		return nil, nil, errors.Join(err, cards.Close())
	}
	return &layerRequest{*q, parts}, cards, nil
}

// decodeTokens is M of decode.
const decodeTokens = 16

// layerMeter measures the layers of a model before and after.
type layerMeter struct {
	layerRequest
	strict, total bool
	before, after []layer // in the same order
	skipped       []string
	making        *sync.Mutex // of candidates, whose operands cards share

	// Of one card:
	machine measure.Machine
	card    string
	event   func(transform.Event)
	ready   func()
}

// meterModels measures the linear layers of both models in every phase of the workload, on all cards at
// the same time. What it returns holds, also beside an error, what was measured.
func meterModels(c *cli.Context, cards machines, q *layerRequest, src, out *weights.Model) (energyReport, error) {
	meter, err := newLayerMeter(c, q, src, out)
	if err != nil {
		return nil, err
	}
	progress := term.NewBars(c)
	defer progress.End()
	if len(cards) == 1 {
		meter.machine, meter.event = cards[0], progress.On("")
		e, err := meter.measure(c.Context)
		if err == nil {
			err = meter.sign(c.Context, e)
		}
		return e, interrupted(err, len(e.Phases) > 0)
	}
	t := &energyTogether{}
	for _, m := range cards {
		t.Cards = append(t.Cards, cardEnergy{Name: m.Name})
	}
	err = measure.Together(c.Context, cards, func(ctx context.Context, i int, ready func()) error {
		own := *meter
		own.machine, own.card, own.event, own.ready = cards[i], cards[i].Name, progress.On(cards[i].Name), ready
		return q.guard(func() (err error) {
			t.Cards[i].measuredEnergy, err = own.measure(ctx)
			return err
		})
	})
	t.add()
	if err == nil { // the first card's stands for all, which run the same
		meter.machine = cards[0]
		err = meter.sign(c.Context, t.Cards[0].measuredEnergy)
	}
	return t, interrupted(err, slices.ContainsFunc(t.Cards, func(c cardEnergy) bool { return len(c.Phases) > 0 }))
}

// newLayerMeter finds the layers.
func newLayerMeter(c *cli.Context, q *layerRequest, src, out *weights.Model) (*layerMeter, error) {
	all, skipped, err := layersOf(src, q.readings, "")
	if err != nil {
		return nil, err
	}
	before := slices.DeleteFunc(slices.Clone(all), func(l layer) bool {
		_, ok := gemm.TypeOf(l.w.DType)
		if !ok {
			skipped = append(skipped, l.name)
		}
		return !ok
	})
	m := &layerMeter{layerRequest: *q, strict: c.IsSet("precision"), total: c.Bool("total"), before: before, skipped: skipped, making: &sync.Mutex{}}
	if len(before) > 0 {
		m.after, err = sameLayers(out, out.Dir, q.readings, before)
	}
	return m, err
}

// measure takes every phase of the workload on a card.
func (m *layerMeter) measure(ctx context.Context) (*measuredEnergy, error) {
	e := &measuredEnergy{
		GPU: m.machine.Card().Info().Name, Simulated: m.machine.Platform() == nil, Role: m.role,
		Phases: []measuredPhase{}, Skipped: m.skipped, strict: m.strict, card: m.card,
	}
	if len(m.before) == 0 {
		return e, nil
	}
	typ, _ := gemm.TypeOf(m.before[0].w.DType)
	e.X = m.xText(typ)
	for _, p := range []measuredPhase{
		{Phase: "prefill", Share: m.workload.Prefill, Tokens: defaultTokens},
		{Phase: "decode", Share: m.workload.Decode, Tokens: decodeTokens},
	} {
		if p.Share == 0 {
			continue
		}
		err := m.phase(ctx, &p)
		if p.Total != nil || len(p.Layers) > 0 {
			e.Phases = append(e.Phases, p)
		}
		e.Invalid = measure.Against(e.runs(""))
		if err != nil {
			return e, err
		}
	}
	e.mix()
	return e, nil
}

// phase takes the total and then, where there are several, every kind of layer.
func (m *layerMeter) phase(ctx context.Context, p *measuredPhase) (err error) {
	p.Total, err = m.row(ctx, p, p.Phase, func(layer) bool { return true })
	p.TooLarge = errors.Is(err, cuda.ErrOutOfMemory)
	kinds := m.kinds()
	switch {
	case p.TooLarge && len(kinds) > 1:
	case err != nil || len(kinds) == 1 || m.total:
		return err
	}
	for _, kind := range kinds {
		row, err := m.row(ctx, p, p.Phase+" "+kind, func(l layer) bool { return l.kind == kind })
		if row != nil {
			row.Kind = kind
			p.Layers = append(p.Layers, *row)
		}
		if err != nil {
			return err
		}
	}
	if p.TooLarge {
		p.Total = totalOf(p.Layers)
	}
	return nil
}

func (m *layerMeter) kinds() (kinds []string) {
	for _, l := range m.before {
		if !slices.Contains(kinds, l.kind) {
			kinds = append(kinds, l.kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// row measures some layers. The card's self-test is made once.
func (m *layerMeter) row(ctx context.Context, p *measuredPhase, stage string, in func(layer) bool) (*measuredRow, error) {
	var before, after []layer
	identical := true
	for i, l := range m.before {
		if in(l) {
			before, after = append(before, l), append(after, m.after[i])
			identical = identical && bytes.Equal(l.w.Data, m.after[i].w.Data)
		}
	}
	row := &measuredRow{Layers: len(before), Identical: identical}
	if identical {
		return row, nil
	}
	source, output, err := m.candidates(ctx, before, after, p.Tokens)
	if err != nil {
		return nil, err
	}
	r, err := m.compare(ctx, m.machine, m.meter, p.Phase == "decode", source, []measure.Candidate{output}, func(e transform.Event) {
		if e.Stage == "measure" {
			e.Stage = stage
		}
		m.event(e)
	}, m.ready)
	if r == nil {
		return nil, err
	}
	m.meter.SelfTest = r.SelfTest
	v := r.Variants[0]
	row.Run, row.Relative, row.Interval, row.RelativeTime = r, v.RelativeEnergy, v.Interval, v.RelativeTime
	return row, err
}

// candidates are both models' layers as products.
func (m *layerMeter) candidates(ctx context.Context, before, after []layer, tokens int) (source, output measure.Candidate, err error) {
	m.making.Lock()
	defer m.making.Unlock()
	streaming := m.role == cost.Streaming
	if source, err = m.candidate(ctx, "source", before, before, tokens, streaming); err == nil {
		output, err = m.candidate(ctx, "output", after, before, tokens, streaming)
	}
	return source, output, err
}

// totalOf rows that were measured one by one, each counting by its energy; nil where one is not
// known.
func totalOf(rows []measuredRow) *measuredRow {
	var total measuredRow
	var joules, after, square float64
	for _, r := range rows {
		if r.Run == nil || r.Interval == nil {
			return nil
		}
		e := r.Run.Baseline.Joules
		half := e * (r.Interval[1] - r.Interval[0]) / 2
		total.Layers += r.Layers
		joules, after, square = joules+e, after+e*r.Relative, square+half*half
	}
	half := math.Sqrt(square) / joules
	total.Relative = after / joules
	total.Interval = []float64{total.Relative - half, total.Relative + half}
	return &total
}

// mix weighs the phases by their shares of the source's energy; their errors are independent.
func (e *measuredEnergy) mix() {
	if e.nothingChanged() {
		return
	}
	var ratio, square float64
	for _, p := range e.Phases {
		switch t := p.Total; {
		case t == nil:
			return
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

// nothingChanged says that there was nothing to measure.
func (e *measuredEnergy) nothingChanged() bool {
	return !slices.ContainsFunc(e.Phases, func(p measuredPhase) bool { return p.Total == nil || !p.Total.Identical })
}
