package transform

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Trial is a whole model that was run.
type Trial struct {
	Energy     float64     `json:"energy"`             // of all layers, relative, predicted
	Predicted  float64     `json:"predicted"`          // divergence in nats, from single layers
	Divergence float64     `json:"divergence"`         // measured
	Loss       float64     `json:"loss"`               // measured rise, in nats
	Interval   *[2]float64 `json:"interval,omitempty"` // of Loss, 95 %; absent where the tokens give none
	Kept       bool        `json:"kept,omitempty"`     // within the budget, and best so far
}

// Found is what a search did.
type Found struct {
	Budget float64 `json:"budget"` // of divergence, nats
	Trials []Trial `json:"trials"`
	// Frontier is what other budgets would save, foretold from single layers and the trials.
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

// Margin is the share of the budget by which outputs may diverge on tokens that are held back: values
// that were fitted to some tokens lose more on those of other texts. On llama-17m perplexity on
// evaluation tokens rises 1.5 to 1.8 times as far as the outputs diverge on held ones. Besides, the
// loss on these rises by no more than the whole budget at the upper end of its 95 % interval.
const Margin = 0.5

// keeps says whether a model keeps a budget of most nats. Where the tokens give no interval its
// divergence alone counts.
func (t *Trial) keeps(most float64) bool {
	return t.Divergence <= Margin*most && (t.Interval == nil || t.Interval[1] <= most)
}

// spent is the share of the budget that a model takes, as far as divergences go: a loss rises in
// proportion to them, and its interval's width with their root.
func (t *Trial) spent(most float64) float64 {
	share := t.Divergence / (Margin * most)
	if t.Interval != nil {
		loss := math.Max(t.Loss, 0)
		half := math.Max(t.Interval[1]-loss, 0)
		root := (half + math.Sqrt(half*half+4*loss*most)) / (2 * most) // of the divergence over what it may be
		share = math.Max(share, root*root)
	}
	if t.keeps(most) {
		share = math.Min(share, 1)
	}
	return share
}

// searchTrials in each round, and the shares of the budget that a trial aims at and is content with.
const (
	searchTrials = 8
	aimed        = 0.975
	enough       = 0.95
)

// bisect runs whole models, of predicted losses that are foretold to spend the budget, between the
// largest that kept it and the smallest that did not. better says whether one of them is the
// best so far.
func (s *search) bisect() (better bool, err error) {
	most := *s.p.opt.MaxLoss
	low, high := 0.0, math.Nextafter(s.trade.most(), math.Inf(1))
	for range searchTrials {
		o, ok := s.trade.between(low, s.aim(most, aimed), high)
		if !ok {
			return better, nil
		}
		t, err := s.trial(o)
		if err != nil {
			return better, err
		}
		if !t.keeps(most) {
			high = o.loss
		} else {
			low = o.loss
			if s.kept == nil || t.Energy < s.kept.Energy {
				better = true
				if err := s.keep(t, o); err != nil {
					return better, err
				}
			}
		}
		if s.over() || t.keeps(most) && t.spent(most) > enough {
			return better, nil
		}
	}
	return better, nil
}

// aim is the predicted loss of a model that would spend a share of a budget of most nats. What is
// spent grows by some power of what is predicted, between two trials that surround it; beyond
// them all it is taken for proportional, and not far beyond.
func (s *search) aim(most, share float64) float64 {
	const far = 16
	trials := slices.Clone(s.found.Trials)
	slices.SortFunc(trials, func(a, b Trial) int { return cmp.Compare(a.Predicted, b.Predicted) })
	i := slices.IndexFunc(trials, func(t Trial) bool { return t.spent(most) > share })
	switch {
	case len(trials) == 0:
		return share * Margin * most
	case i < 0:
		t := trials[len(trials)-1]
		return t.Predicted * share / math.Max(t.spent(most), share/far)
	case i == 0:
		t := trials[0]
		return t.Predicted * math.Max(share/t.spent(most), 1./far)
	}
	a, b := trials[i-1], trials[i]
	from, to := math.Max(a.spent(most), share/1000), b.spent(most)
	way := math.Log(share/from) / math.Log(to/from)
	return a.Predicted * math.Pow(b.Predicted/a.Predicted, math.Min(math.Max(way, 0.1), 0.9))
}

// trial runs a whole model, or finds it in the record.
func (s *search) trial(o offer) (*Trial, error) {
	t := Trial{Energy: o.energy, Predicted: o.loss}
	record, name := s.p.opt.Search.Record, fmt.Sprintf("trial-%x", math.Float64bits(o.loss))
	known := false
	if record != nil {
		var before Trial
		found, err := record.Load(name, &before)
		if err != nil {
			return nil, err
		}
		if known = found && before.Predicted == t.Predicted && before.Energy == t.Energy; known {
			t = before
		}
	}
	if !known {
		if err := s.run(o, &t); err != nil {
			return nil, fmt.Errorf("running a whole model: %w", err)
		}
		if record != nil {
			if err := record.Save(name, t); err != nil {
				return nil, err
			}
		}
	}
	s.found.Trials = append(s.found.Trials, t)
	return &s.found.Trials[len(s.found.Trials)-1], nil
}

// run has an offer judged.
func (s *search) run(o offer, t *Trial) error {
	s.p.event("trial", len(s.found.Trials), searchTrials)
	nats, loss, interval, err := s.p.opt.Search.Judge.WholeModel(s.p.ctx, s.values(o))
	switch {
	case err != nil:
		return err
	case !isNumber(nats) || !isNumber(loss):
		return fmt.Errorf("its outputs diverge by %v nats and its loss rises by %v: the weights are too large for float32", nats, loss)
	}
	t.Divergence, t.Loss = nats, loss
	if isNumber(interval[0]) && isNumber(interval[1]) {
		t.Interval = &interval
	}
	return nil
}

// isNumber is false of NaN and infinity, which no record and no plan can hold.
func isNumber(v float64) bool { return v-v == 0 }

// keep takes a trial's model for the best so far, and hands its plan out.
func (s *search) keep(t *Trial, o offer) error {
	t.Kept = true
	kept := *t
	s.kept, s.best = &kept, o
	for i := range s.targets {
		s.taken[i] = s.point(o, i).Steps
	}
	if s.p.opt.Search.Better == nil {
		return nil
	}
	p, plan := *s.p, *s.p.plan
	p.plan = &plan
	plan.Steps = append(slices.Clone(plan.Steps), flatten(s.taken)...)
	plan.Found = &Found{Budget: s.found.Budget, Trials: slices.Clone(s.found.Trials)}
	if err := p.complete(); err != nil {
		return err
	}
	return s.p.opt.Search.Better(&plan)
}

// foretell looks up other budgets.
func (s *search) foretell() {
	for _, share := range []float64{0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05} {
		o := s.trade.within(s.aim(math.Log1p(share), 1))
		s.found.Frontier = append(s.found.Frontier, Prospect{share, o.energy})
	}
}
