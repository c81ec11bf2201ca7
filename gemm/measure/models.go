package measure

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// ModelOptions are the options of [Models]. The zero value is ready to use.
type ModelOptions struct {
	// Operands gives X, the role, the kernel of quantised layers, the seed and the family. Its other fields are
	// ignored: layers are multiplied in their stored form, and each phase has its own number of tokens.
	Operands operand.Options
	// Workload gives the phases to measure and their shares. Default: [cost.DefaultWorkload].
	Workload cost.Workload
	// TotalOnly measures all layers together and leaves out the rows by kind of layer. Default: false.
	TotalOnly bool
	// Duties are the duties to measure; see [Options].Duties.
	Duties []float64
	// Meter holds the options of each measurement. The machine's values replace Clock and Self. Precision or Time ends
	// a row.
	Meter power.Options
	// Splitter splits the totals' power by component. Its model must describe the first card. Default: no split.
	Splitter *Splitter
	// Progress is called with each card's name and events, from several goroutines. The name of a single card is empty.
	// Default: not called.
	Progress func(card string, e Event)
}

// Models measures the energy of all linear layers of a model and of its converted copy, on one card or on several cards
// at the same time. In every phase of the workload it compares one pass through all layers ([Compare]). If there are
// several kinds of layers, it then compares each kind. Prefill has [operand.PrefillTokens] tokens. Decode has
// [operand.DecodeTokens] tokens and reads the weights from memory.
//
// The layers of after must have the same names as the layers of before. A layer whose stored form no GPU can multiply
// is left out and named in the report. Layers with the same bytes in both models are not measured. If a model does not
// fit on a card, each kind of layer is measured separately, and the total is the sum over the kinds.
//
// The report is nil only if there are no cards or the layers cannot be found. After any other error it holds the
// completed measurements. The caller closes the models.
func Models(ctx context.Context, cards []Named, before, after *weights.Model, o ModelOptions) (*ModelReport, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if len(cards) == 0 {
		return nil, errors.New("no card to measure on: give a machine opened with Open")
	}
	for _, m := range []*weights.Model{before, after} {
		if err := m.Usable(); err != nil {
			return nil, err
		}
	}
	if o.Workload == (cost.Workload{}) {
		o.Workload = cost.DefaultWorkload
	}
	o.Operands.Type, o.Operands.Tokens, o.Operands.Quantised, o.Operands.OnCard = 0, 0, true, true
	set := operand.NewSet(o.Operands)
	run := modelRun{ModelOptions: o, set: set, files: before.Dir + ", " + after.Dir}
	if o.Operands.X.Path != "" {
		run.files += ", " + o.Operands.X.Path
	}
	r, err := run.measure(ctx, cards, before, after)
	return r, errors.Join(err, set.Close())
}

// modelRun is a comparison of two models.
type modelRun struct {
	ModelOptions
	set           *operand.Set
	files         string          // names of both models, for errors of mapped memory
	before, after []operand.Layer // in the same order
	skipped       []string
}

func (m *modelRun) measure(ctx context.Context, cards []Named, before, after *weights.Model) (*ModelReport, error) {
	if err := m.find(before, after); err != nil {
		return nil, err
	}
	r := &ModelReport{}
	first := cardRun{modelRun: m, machine: cards[0].Machine}
	if len(cards) == 1 {
		e := &ModelEnergy{}
		r.Cards = []CardEnergy{{ModelEnergy: e}}
		err := first.measure(ctx, e)
		if err == nil {
			err = first.split(ctx, e)
		}
		return r, err
	}
	for _, c := range cards {
		r.Cards = append(r.Cards, CardEnergy{Name: c.Name})
	}
	err := Together(ctx, cards, func(ctx context.Context, i int, ready func()) error {
		own := cardRun{modelRun: m, machine: cards[i].Machine, name: cards[i].Name, ready: ready}
		r.Cards[i].ModelEnergy = &ModelEnergy{}
		return own.measure(ctx, r.Cards[i].ModelEnergy)
	})
	r.join()
	if err == nil { // kernels of the first card; all cards run the same kernels
		err = first.split(ctx, r.Cards[0].ModelEnergy)
	}
	return r, err
}

// find finds the layers of both models.
func (m *modelRun) find(before, after *weights.Model) error {
	all, skipped, err := m.set.Linear(before)
	if err != nil {
		return err
	}
	m.skipped = skipped
	for _, l := range all {
		if _, ok := arith.TypeOf(l.W.DType); ok {
			m.before = append(m.before, l)
		} else {
			m.skipped = append(m.skipped, l.Name)
		}
	}
	if len(m.before) > 0 {
		m.after, err = m.set.Same(after, m.before)
	}
	return err
}

// kinds returns the kinds of layers, sorted.
func (m *modelRun) kinds() (kinds []string) {
	for _, l := range m.before {
		if !slices.Contains(kinds, l.Kind) {
			kinds = append(kinds, l.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// candidates returns both models' layers as products.
func (m *modelRun) candidates(ctx context.Context, before, after []operand.Layer, tokens int) (source, output Candidate, err error) {
	of := func(name string, layers []operand.Layer) (Candidate, error) {
		products, err := m.set.Multiply(ctx, layers, before, tokens)
		if err != nil {
			return Candidate{}, err
		}
		return NewCandidate(ctx, name, products)
	}
	if source, err = of("source", before); err == nil {
		output, err = of("output", after)
	}
	return source, output, err
}

// cardRun is the measurement on one card.
type cardRun struct {
	*modelRun
	machine  Machine
	name     string // the card's name; empty for a single card
	ready    func()
	selfTest *power.SelfTest // runs once
}

// measure measures every phase of the workload. After an error e holds the completed measurements.
func (c *cardRun) measure(ctx context.Context, e *ModelEnergy) error {
	info := c.machine.Card().Info()
	e.GPU, e.CardID, e.Simulated = info.Name, info.ID(), c.machine.Platform() == nil
	e.Phases, e.Skipped = []Phase{}, c.skipped
	if c.Operands.Streaming {
		e.Role = cost.Streaming
	}
	if len(c.before) == 0 {
		return nil
	}
	typ, _ := arith.TypeOf(c.before[0].W.DType)
	e.X = c.Operands.XText(typ)
	for _, p := range []Phase{
		{Phase: "prefill", Share: c.Workload.Prefill, Tokens: operand.PrefillTokens},
		{Phase: "decode", Share: c.Workload.Decode, Tokens: operand.DecodeTokens},
	} {
		if p.Share == 0 {
			continue
		}
		err := c.phase(ctx, e, &p)
		if p.Total != nil || len(p.Layers) > 0 {
			e.Phases = append(e.Phases, p)
		}
		e.Invalid = InvalidReasons(e.totals(""))
		if err != nil {
			return err
		}
	}
	e.weigh()
	return nil
}

// phase measures the total. If there are several kinds of layers, it then measures each kind.
func (c *cardRun) phase(ctx context.Context, e *ModelEnergy, p *Phase) (err error) {
	p.Total, err = c.row(ctx, e, p, p.Phase, func(operand.Layer) bool { return true })
	p.TooLarge = errors.Is(err, cuda.ErrOutOfMemory)
	kinds := c.kinds()
	switch {
	case p.TooLarge && len(kinds) > 1:
	case err != nil || len(kinds) == 1 || c.TotalOnly:
		return err
	}
	for _, kind := range kinds {
		row, err := c.row(ctx, e, p, p.Phase+" "+kind, func(l operand.Layer) bool { return l.Kind == kind })
		if row != nil {
			row.Kind = kind
			p.Layers = append(p.Layers, *row)
		}
		if err != nil {
			return err
		}
	}
	if p.TooLarge {
		p.Total = sumRows(p.Layers)
	}
	return nil
}

// row measures the layers for which in is true.
func (c *cardRun) row(ctx context.Context, e *ModelEnergy, p *Phase, stage string, in func(operand.Layer) bool) (*Row, error) {
	var before, after []operand.Layer
	identical := true
	err := weights.Guard(c.files, func() error {
		for i, l := range c.before {
			if in(l) {
				before, after = append(before, l), append(after, c.after[i])
				identical = identical && l.W.SameBytes(c.after[i].W)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	row := &Row{Layers: len(before), Identical: identical}
	if identical {
		return row, nil
	}
	source, output, err := c.candidates(ctx, before, after, p.Tokens)
	if err != nil {
		return nil, err
	}
	o := Options{Cold: p.Phase == "decode", Duties: c.Duties, Meter: c.Meter, Ready: c.ready}
	if c.selfTest != nil {
		o.Meter.SelfTest = c.selfTest
	}
	if c.Progress != nil {
		o.Progress = func(e Event) {
			if e.Stage == "measure" {
				e.Stage = stage
			}
			c.Progress(c.name, e)
		}
	}
	r, err := Compare(ctx, c.machine, source, []Candidate{output}, o)
	if r == nil {
		return nil, err
	}
	c.nameKernels(e, source.Kernels, output.Kernels)
	c.selfTest = r.SelfTest
	row.of(r)
	return row, err
}

// nameKernels adds the kernels of a row to the result. A candidate without quantised layers has none.
func (c *cardRun) nameKernels(e *ModelEnergy, before, after []string) {
	add := func(list *[]string, kernels []string) {
		if len(kernels) == 0 {
			kernels = []string{operand.Product{Problem: gemm.Problem{Streaming: c.Operands.Streaming}}.Multiplication()}
		}
		for _, k := range kernels {
			if !slices.Contains(*list, k) {
				*list = append(*list, k)
			}
		}
	}
	differ := !slices.Equal(before, after)
	if differ || len(before) > 0 {
		add(&e.Kernels, before)
	}
	if differ {
		add(&e.KernelsAfter, after)
	}
}

// split adds the split of power by component to every phase. It reads all bits, which takes time, so it runs after the
// measurements.
func (c *cardRun) split(ctx context.Context, e *ModelEnergy) error {
	if c.Splitter == nil {
		return nil
	}
	for i := range e.Phases {
		p := &e.Phases[i]
		if p.Total == nil || p.Total.Run == nil {
			continue
		}
		source, output, err := c.candidates(ctx, c.before, c.after, p.Tokens)
		if err != nil {
			return err
		}
		run, then := p.Total.Run.Baseline, p.Total.Run.Variants[0]
		d := Dissected{
			Name: p.Phase, Cold: p.Phase == "decode", Before: source.Products, After: output.Products,
			Platform: c.machine.Platform(), Seconds: run.Seconds, AfterSeconds: then.Seconds,
		}
		if run.SMClock != nil && then.SMClock != nil {
			d.Clock, d.AfterClock = *run.SMClock, *then.SMClock
		}
		err = weights.Guard(strings.Join(append(source.Files, output.Files...), ", "), func() error {
			p.Components, err = c.Splitter.Split(ctx, d)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
