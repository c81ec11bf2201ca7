package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Margin is the share of the budget by which outputs may diverge on held-out tokens. Values that are fitted to some
// tokens lose more on other texts. On llama-17m, the loss on evaluation tokens rises by 1.5 to 1.8 times the
// divergence on held-out tokens. In addition, the upper end of the 95 % interval of the rise of the loss on held-out
// tokens must be within the whole budget.
const Margin = 0.5

// keeps reports whether a model keeps a budget of most nats per token. If the tokens give no interval, only the
// divergence counts.
func keeps(t *plan.Trial, most float64) bool {
	return t.Divergence <= Margin*most && (t.Interval == nil || t.Interval[1] <= most)
}

// spent returns the share of the budget that a model spends, on a scale linear in the divergence. The loss rises in
// proportion to the divergence, and the width of its interval in proportion to the square root of the divergence.
func spent(t *plan.Trial, most float64) float64 {
	share := t.Divergence / (Margin * most)
	if t.Interval != nil {
		loss := math.Max(t.Loss, 0)
		half := math.Max(t.Interval[1]-loss, 0)
		root := (half + math.Sqrt(float64(half*half)+float64(4*loss*most))) / (2 * most) // root of the divergence over the largest allowed one
		share = math.Max(share, root*root)
	}
	if keeps(t, most) {
		share = math.Min(share, 1)
	}
	return share
}

const (
	searchTrials = 8     // largest number of trials in a round
	aimed        = 0.975 // share of the budget that a trial aims at
	enough       = 0.95  // share of the budget that ends a round
)

// bisect tries whole models until one spends the budget. Their predicted losses lie between the largest one that kept
// the budget and the smallest one that did not. better is true if one of the models is the best so far.
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

// aim returns the predicted loss of a model that should spend a share of a budget of most nats per token. Between two
// trials, aim assumes that the spent share is a power of the predicted loss. Outside all trials it assumes
// proportionality, up to a factor of 16.
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
	way := elementary.Log(share/from) / elementary.Log(to/from)
	return a.Predicted * elementary.Pow(b.Predicted/a.Predicted, math.Min(math.Max(way, 0.1), 0.9))
}

// trial evaluates an allocation, or loads its trial from the record.
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

// run evaluates an allocation's model.
func (s *search) run(ctx context.Context, o allocation, t *plan.Trial) error {
	s.report(progress.Event{Stage: "trial", Done: int64(len(s.found.Trials)), Total: searchTrials})
	nats, loss, interval, err := s.opt.Evaluator.WholeModel(ctx, values{s, o})
	switch {
	case err != nil:
		return err
	case !isNumber(nats) || !isNumber(loss):
		return fmt.Errorf("the model's outputs diverge by %v nats and its loss rises by %v nats: its weights are too large for float32: give a budget of output SNR", nats, loss)
	}
	t.Divergence, t.Loss = nats, loss
	if isNumber(interval[0]) && isNumber(interval[1]) {
		t.Interval = &interval
	}
	return nil
}

// isNumber returns false for NaN and infinity, which JSON cannot represent.
func isNumber(v float64) bool { return v-v == 0 }

// keep records a trial's model as the best so far, and calls Better.
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

// estimateFrontier predicts the energy at other budgets.
func (s *search) estimateFrontier() {
	for _, share := range []float64{0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05} {
		o := s.within(s.aim(elementary.Log1p(share), 1))
		s.found.Frontier = append(s.found.Frontier, plan.Saving{MaxLoss: share, Energy: o.energy})
	}
}
