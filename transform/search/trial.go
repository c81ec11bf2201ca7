package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Margin is the share of the budget by which outputs may diverge on tokens that are held back: values
// that were fitted to some tokens lose more on those of other texts. On llama-17m perplexity on
// evaluation tokens rises 1.5 to 1.8 times as far as the outputs diverge on held ones. Besides, the
// loss on these rises by no more than the whole budget at the upper end of its 95 % interval.
const Margin = 0.5

// keeps reports whether a model keeps a budget of most nats. Where the tokens give no interval its divergence
// alone counts.
func keeps(t *plan.Trial, most float64) bool {
	return t.Divergence <= Margin*most && (t.Interval == nil || t.Interval[1] <= most)
}

// spent is the share of the budget that a model takes, as far as divergences go: a loss rises in
// proportion to them, and its interval's width with their root.
func spent(t *plan.Trial, most float64) float64 {
	share := t.Divergence / (Margin * most)
	if t.Interval != nil {
		loss := math.Max(t.Loss, 0)
		half := math.Max(t.Interval[1]-loss, 0)
		root := (half + math.Sqrt(half*half+4*loss*most)) / (2 * most) // of the divergence over what it may be
		share = math.Max(share, root*root)
	}
	if keeps(t, most) {
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

// bisect runs whole models, of predicted losses that are estimated to spend the budget, between the
// largest that kept it and the smallest that did not. better says whether one of them is the
// best so far.
func (s *search) bisect(ctx context.Context) (better bool, err error) {
	most := s.maxLoss
	low, high := 0.0, math.Nextafter(s.most(), math.Inf(1))
	for range searchTrials {
		o, ok := s.between(low, s.aim(most, aimed), high)
		if !ok {
			return better, nil
		}
		t, err := s.trial(ctx, o)
		if err != nil {
			return better, err
		}
		if !keeps(t, most) {
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
		if s.over() || keeps(t, most) && spent(t, most) > enough {
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
	slices.SortFunc(trials, func(a, b plan.Trial) int { return cmp.Compare(a.Predicted, b.Predicted) })
	i := slices.IndexFunc(trials, func(t plan.Trial) bool { return spent(&t, most) > share })
	switch {
	case len(trials) == 0:
		return share * Margin * most
	case i < 0:
		t := &trials[len(trials)-1]
		return t.Predicted * share / math.Max(spent(t, most), share/far)
	case i == 0:
		t := &trials[0]
		return t.Predicted * math.Max(share/spent(t, most), 1./far)
	}
	a, b := trials[i-1], trials[i]
	from, to := math.Max(spent(&a, most), share/1000), spent(&b, most)
	way := math.Log(share/from) / math.Log(to/from)
	return a.Predicted * math.Pow(b.Predicted/a.Predicted, math.Min(math.Max(way, 0.1), 0.9))
}

// trial runs a whole model, or finds it in the record.
func (s *search) trial(ctx context.Context, o allocation) (*plan.Trial, error) {
	t := plan.Trial{Energy: o.energy, Predicted: o.loss}
	record, name := s.opt.Record, fmt.Sprintf("trial-%x", math.Float64bits(o.loss))
	known := false
	if record != nil {
		var before plan.Trial
		found, err := record.Load(name, &before)
		if err != nil {
			return nil, err
		}
		if known = found && before.Predicted == t.Predicted && before.Energy == t.Energy; known {
			t = before
		}
	}
	if !known {
		if err := s.run(ctx, o, &t); err != nil {
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

// run evaluates an allocation.
func (s *search) run(ctx context.Context, o allocation, t *plan.Trial) error {
	s.report(progress.Event{Stage: "trial", Done: int64(len(s.found.Trials)), Total: searchTrials})
	nats, loss, interval, err := s.opt.Evaluator.WholeModel(ctx, values{s, o})
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

// keep takes a trial's model for the best so far, and hands its steps out.
func (s *search) keep(t *plan.Trial, o allocation) error {
	t.Kept = true
	kept := *t
	s.kept, s.best = &kept, o
	for i := range s.layers {
		s.taken[i] = s.point(o, i).Steps
	}
	if s.opt.Better == nil {
		return nil
	}
	return s.opt.Better(s.taken, plan.Search{Budget: s.found.Budget, Trials: slices.Clone(s.found.Trials)})
}

// estimateFrontier looks up what other budgets would save.
func (s *search) estimateFrontier() {
	for _, share := range []float64{0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05} {
		o := s.within(s.aim(math.Log1p(share), 1))
		s.found.Frontier = append(s.found.Frontier, plan.Saving{MaxLoss: share, Energy: o.energy})
	}
}
