package transform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Values gives tensors by name, decoded, as the source stores them; nil for one that is to stay as it
// is.
type Values = interface {
	Tensor(ctx context.Context, name string) ([]float32, error)
}

// Judge runs the model on tokens that no input was taken from.
type Judge interface {
	// Alone reports for each layer by how many nats per token the outputs diverge from the model's
	// where that layer alone is changed's and the others are base's (nil: the model's own).
	Alone(ctx context.Context, base, changed Values, done func(layer string, nats float64) error) error
	// Together is the same where all layers are changed's, and by how much the loss rises, in nats
	// with its 95 % interval.
	Together(ctx context.Context, changed Values) (divergence, loss float64, interval [2]float64, err error)
}

// Search is what the search for a plan works with.
type Search struct {
	Judge Judge // required
	// Time after which the best plan found is taken; it is used for choices finer than powers of two.
	// 0: these are not tried, and the search ends when the budget is spent.
	Time time.Duration
	// Record keeps what was found, and gives back what an earlier search found under the same name;
	// nil: nothing is kept.
	Record Record
	// Better is called with every plan that is better than those before; may be nil.
	Better func(*Plan) error
}

// Record keeps what a search has found out. Names are those of files.
type Record interface {
	Load(name string, into any) (found bool, err error)
	Save(name string, from any) error
}

// Trial is a whole model that was run.
type Trial struct {
	Energy     float64    `json:"energy"`         // of all layers, relative, predicted
	Predicted  float64    `json:"predicted"`      // divergence in nats, from single layers
	Divergence float64    `json:"divergence"`     // measured
	Loss       float64    `json:"loss"`           // measured rise, in nats
	Interval   [2]float64 `json:"interval"`       // of Loss, 95 %
	Kept       bool       `json:"kept,omitempty"` // within the budget, and best so far
}

// Found is what a search did.
type Found struct {
	Budget float64 `json:"budget"` // of divergence, nats
	Trials []Trial `json:"trials"`
	// Frontier is what other budgets would save, foretold from single layers.
	Frontier []Prospect `json:"frontier,omitempty"`
}

// Best is the trial whose model was taken; nil where none kept the budget.
func (f *Found) Best() (best *Trial) {
	for i := range f.Trials {
		if f.Trials[i].Kept {
			best = &f.Trials[i]
		}
	}
	return best
}

// Prospect is a budget and what it would save.
type Prospect struct {
	MaxLoss float64 `json:"max_loss"` // share by which perplexity may rise
	Energy  float64 `json:"energy"`   // of all layers, relative, predicted
}

// search is one budget's spending on a whole model.
type search struct {
	p       *planner
	targets []*target
	index   map[string]int // of a target by its tensor
	trade   trade
	frees   []float64
	found   Found
	start   time.Time
	best    offer
	kept    *Trial
}

// Margin is the share of the budget by which outputs may diverge on tokens that are held back: values
// that were fitted to some tokens lose more on those of other texts. On llama-17m perplexity on
// evaluation tokens rises 1.5 to 1.8 times as far as the outputs diverge on held ones.
const Margin = 0.5

// searchRounds of finer choices at most, and trials in each. A second round gains some hundredths of
// a per cent: it is for those who give it time.
const (
	searchRounds = 4
	searchTrials = 5
)

// search spends the budget: what may be had of each layer, what an error of each costs, then whole
// models whose price is bisected until the outputs diverge as far as they may; then again with finer
// choices around those taken.
func (p *planner) search(targets []*target) ([][]*Step, error) {
	s := &search{p: p, targets: targets, index: map[string]int{}, start: time.Now(), found: Found{Budget: Margin * *p.opt.MaxLoss}}
	total := 0.0
	for i, t := range targets {
		s.index[t.tensor.Name] = i
		total += float64(t.tensor.Len())
	}
	for _, t := range targets {
		s.trade.share = append(s.trade.share, float64(t.tensor.Len())/total)
		s.frees = append(s.frees, p.frees(t.tensor.Name))
	}
	if err := s.curves(); err != nil {
		return nil, err
	}
	if err := s.alone(); err != nil {
		return nil, err
	}
	s.best = s.trade.at(0)
	for round := range searchRounds {
		better, err := s.bisect()
		if err != nil {
			return nil, err
		}
		if !better || s.p.opt.Search.Time == 0 || s.over() || round == searchRounds-1 {
			break
		}
		if err := s.refine(round); err != nil {
			return nil, err
		}
	}
	s.foretell()
	p.plan.Found = &s.found
	return s.steps(s.best), nil
}

// foretell looks up other budgets. Single layers' losses add up to a whole model's but for a factor,
// which the best trial shows.
func (s *search) foretell() {
	factor := 1.0
	if s.kept != nil && s.kept.Predicted > 0 {
		factor = s.kept.Divergence / s.kept.Predicted
	}
	for _, share := range []float64{0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05} {
		o := s.trade.within(Margin * math.Log1p(share) / factor)
		s.found.Frontier = append(s.found.Frontier, Prospect{share, o.energy})
	}
}

func (s *search) over() bool {
	limit := s.p.opt.Search.Time
	return limit > 0 && time.Since(s.start) > limit
}

// frees is how many weights of other layers are zeroed with one input of this one: those of the
// outputs that write it, where no other layer reads it.
func (p *planner) frees(tensor string) float64 {
	if p.layout == nil {
		return 0
	}
	claim := p.layout.Claims[tensor]
	if claim == nil || len(claim.Axes) != 2 {
		return 0
	}
	n := 0.0
	for _, name := range claim.Axes[1-claim.OutAxis].Indices() {
		readers, writers := p.readers(p.layout.Index(name))
		if len(readers) != 1 || len(readers[0].positions) == 0 || len(readers[0].positions[0]) != 1 {
			continue // an input alone frees nothing
		}
		for _, w := range writers {
			t, _ := p.model.Tensor(w.tensor)
			n += float64(t.Len()) / float64(p.layout.Claims[w.tensor].Axes[p.layout.Claims[w.tensor].OutAxis].Len())
		}
	}
	return n
}

// curves of all targets; those that an earlier search found are taken.
func (s *search) curves() error {
	s.trade.curves = make([]curve, len(s.targets))
	return s.p.parallel(s.p.ctx, "try", len(s.targets), len(s.targets), func(i int) (err error) {
		t := s.targets[i]
		if t.base, err = t.compile(); err != nil {
			return err
		}
		return s.recorded("layers/"+t.tensor.Name, &s.trade.curves[i], func() (curve, error) {
			return t.curve(s.p.opt.Passes, s.frees[i], lambdas(), nil)
		})
	})
}

// recorded takes a curve from the record, or makes and records it.
func (s *search) recorded(name string, c *curve, make func() (curve, error)) (err error) {
	record := s.p.opt.Search.Record
	if record != nil {
		if found, err := record.Load(name, c); found || err != nil {
			return err
		}
	}
	if *c, err = make(); err != nil || record == nil {
		return err
	}
	return record.Save(name, c)
}

// probe is about the error at which sensitivities are measured: enough to be told from none, and
// little enough that twice the error is twice the loss.
const probe = 3e-3

// alone measures the sensitivity of each layer beside others that are as they were.
func (s *search) alone() error {
	o := offer{choice: make([]int, len(s.targets))}
	for i, c := range s.trade.curves {
		best := math.Inf(1)
		for k, p := range c {
			if d := math.Abs(math.Log(p.Error / probe)); p.Error > 0 && d < best {
				o.choice[i], best = k, d
			}
		}
	}
	return s.sense(s.values(o), func(i int, nats float64) float64 { return nats / s.point(o, i).Error })
}

// refine adds what lies between the choices taken and their neighbours.
func (s *search) refine(round int) error {
	step := math.Exp2(-float64(round + 1))
	curves := make([]curve, len(s.targets))
	err := s.p.parallel(s.p.ctx, "refine", len(s.targets), len(s.targets), func(i int) error {
		curves[i] = s.trade.curves[i]
		t := trellisOf(s.point(s.best, i).Steps)
		if t == nil {
			return nil
		}
		near := []float64{t.Lambda * math.Exp2(-step), t.Lambda * math.Exp2(step)}
		return s.recorded(fmt.Sprintf("layers/%s/%g", s.targets[i].tensor.Name, t.Lambda), &curves[i], func() (curve, error) {
			return s.targets[i].curve(s.p.opt.Passes, s.frees[i], near, s.trade.curves[i])
		})
	})
	for i, c := range curves {
		s.best.choice[i] = c.find(s.point(s.best, i))
		s.trade.curves[i] = c
	}
	return err
}

func (s *search) point(o offer, i int) point { return s.trade.curves[i][o.choice[i]] }

// least sensitivity, in shares of the mean: no error is free.
const leastSensitivity = 1e-4

// sense measures all sensitivities, or takes those of an earlier search.
func (s *search) sense(changed Values, from func(i int, nats float64) float64) error {
	const name = "sensitivities"
	list := map[string]float64{}
	record := s.p.opt.Search.Record
	if record != nil {
		if _, err := record.Load(name, &list); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		s.p.event("sense", 0, len(s.targets))
		err := s.p.opt.Search.Judge.Alone(s.p.ctx, nil, changed, func(layer string, nats float64) error {
			i, ok := s.index[layer]
			if ok {
				list[layer] = from(i, nats)
				s.p.event("sense", len(list), len(s.targets))
			}
			return s.p.ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("measuring what errors cost: %w", err)
		}
		if record != nil {
			if err := record.Save(name, list); err != nil {
				return err
			}
		}
	}
	sensitivity := make([]float64, len(s.targets))
	mean := 0.0
	for i, t := range s.targets {
		v, ok := list[t.tensor.Name]
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			v = 0
		}
		sensitivity[i] = max(0, v)
		mean += sensitivity[i] / float64(len(s.targets))
	}
	if mean == 0 {
		return errors.New("no error of any layer changes the outputs: the tokens cannot judge this model")
	}
	for i := range sensitivity {
		sensitivity[i] = max(sensitivity[i], leastSensitivity*mean)
	}
	s.trade.sensitivity = sensitivity
	return nil
}

// bisect runs whole models of predicted losses that are corrected by what the trials before them
// showed; better says whether one of them is the best so far.
func (s *search) bisect() (better bool, err error) {
	budget := Margin * *s.p.opt.MaxLoss
	low, high := 0.0, math.Inf(1) // predicted losses that kept the budget and did not
	aim := budget
	for range searchTrials {
		if s.over() {
			return better, nil
		}
		o := s.trade.within(aim)
		t, err := s.trial(o, fmt.Sprintf("trial-%x", math.Float64bits(o.loss)))
		if err != nil {
			return better, err
		}
		if t.Divergence <= budget {
			low = max(low, aim)
			if s.kept == nil || t.Energy < s.kept.Energy {
				t.Kept, better = true, true
				s.kept, s.best = t, o
				if err := s.announce(); err != nil {
					return better, err
				}
			}
			if t.Divergence > 0.95*budget || o.loss < 0.5*aim {
				return better, nil // near enough, or nothing more to spend on
			}
		} else {
			high = min(high, aim)
		}
		next := aim * budget / math.Max(t.Divergence, budget/8)
		if next >= high || next <= low {
			if math.IsInf(high, 1) {
				next = 2 * low
			} else {
				next = (low + high) / 2
			}
		}
		aim = next
	}
	return better, nil
}

// trial runs a whole model.
func (s *search) trial(o offer, name string) (*Trial, error) {
	t := Trial{Energy: o.energy, Predicted: o.loss}
	record := s.p.opt.Search.Record
	found := false
	if record != nil {
		var before Trial
		ok, err := record.Load(name, &before)
		if err != nil {
			return nil, err
		}
		if ok && before.Predicted == t.Predicted && before.Energy == t.Energy {
			t, found = before, true
		}
	}
	if !found {
		s.p.event("trial", len(s.found.Trials), searchRounds*searchTrials)
		var err error
		t.Divergence, t.Loss, t.Interval, err = s.p.opt.Search.Judge.Together(s.p.ctx, s.values(o))
		if err != nil {
			return nil, fmt.Errorf("running a whole model: %w", err)
		}
		if record != nil {
			if err := record.Save(name, t); err != nil {
				return nil, err
			}
		}
	}
	t.Kept = false
	s.found.Trials = append(s.found.Trials, t)
	return &s.found.Trials[len(s.found.Trials)-1], nil
}

// announce hands out the best plan so far.
func (s *search) announce() error {
	if s.p.opt.Search.Better == nil {
		return nil
	}
	plan := *s.p.plan
	plan.Steps = append(append([]*Step{}, plan.Steps...), flatten(s.steps(s.best))...)
	plan.Found = &s.found
	return s.p.opt.Search.Better(&plan)
}

func (s *search) steps(o offer) [][]*Step {
	all := make([][]*Step, len(s.targets))
	for i := range s.targets {
		all[i] = s.point(o, i).Steps
	}
	return all
}

func flatten(lists [][]*Step) (all []*Step) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// offered gives the weights of an offer in the source's order.
type offered struct {
	s *search
	o offer
}

func (s *search) values(o offer) Values { return offered{s, o} }

// Tensor makes a layer's values anew.
func (v offered) Tensor(ctx context.Context, name string) (out []float32, err error) {
	i, ok := v.s.index[name]
	if !ok {
		return nil, nil
	}
	steps := v.s.point(v.o, i).Steps
	if len(steps) == 0 {
		return nil, nil
	}
	t := v.s.targets[i]
	err = weights.Guard(t.tensor.File, func() error {
		prog, err := t.compile(steps...)
		if err != nil {
			return err
		}
		if err := prog.prepare(ctx, v.s.p.opt.Workers); err != nil {
			return err
		}
		defer prog.letGo()
		out, err = prog.sourceValues(ctx)
		return err
	})
	return out, err
}

// planBudget lets the search choose for every layer, and says what is expected of each.
func (p *planner) planBudget(targets []*target) error {
	steps, err := p.search(targets)
	if err != nil {
		return err
	}
	p.plan.Steps = append(p.plan.Steps, flatten(steps)...)
	if err := p.pruneUnread(); err != nil {
		return err
	}
	planned := byTensor(p.plan.Steps)
	outlook := make([]Outlook, len(targets))
	err = p.parallel(p.ctx, "look", len(targets), len(targets), func(i int) error {
		t := targets[i]
		outlook[i], err = t.expect(planned[t.tensor.Name])
		return err
	})
	p.plan.Outlook = append(p.plan.Outlook, outlook...)
	return err
}

// expect is the outlook of a target under its steps.
func (t *target) expect(steps []*Step) (out Outlook, err error) {
	out = Outlook{Tensor: t.tensor.Name, Linear: true}
	sample, err := t.sample([][]*Step{steps})
	if err != nil {
		return out, err
	}
	before, err := sample.energy(t.p, t.base.untouched())
	if err != nil {
		return out, err
	}
	prog, err := t.compile(steps...)
	if err != nil {
		return out, err
	}
	if err := prog.prepare(t.p.ctx, 1); err != nil {
		return out, err
	}
	defer prog.letGo()
	after, err := sample.energy(t.p, prog)
	if err != nil {
		return out, err
	}
	loss, err := t.inputLoss(prog)
	out.Before, out.After, out.InputSNR = &before, &after, finiteOrNil(decibels(loss))
	return out, err
}
