// Package search chooses the lossy steps for each linear layer of a model.
//
// Under a budget of output SNR, every layer is decided alone ([Choose]). A budget of loss is distributed over the
// layers for the largest saving ([Spend]). This takes four steps: a rate–distortion curve of each layer; the
// sensitivity of the model's outputs to errors of each layer; an allocation with one Lagrange multiplier λ for all
// layers; and trials of whole models, which bisect the predicted loss of the allocation.
package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Values returns the decoded values of a tensor by name, in the source's order; nil for an unchanged tensor. Several
// goroutines may request different tensors at the same time.
type Values = interface {
	Tensor(ctx context.Context, name string) ([]float32, error)
}

// Evaluator measures how far a model with changed weights diverges from the source. It uses held-out tokens, which
// are not used to fit values.
type Evaluator interface {
	// PerLayer calls done for each layer with the KL divergence of the model's outputs from the source's, in nats per
	// token, if only this layer has the values of changed. All other layers have the values of base (nil: the
	// source's).
	PerLayer(ctx context.Context, base, changed Values, done func(layer string, nats float64) error) error
	// WholeModel returns the divergence if all layers have the values of changed, and the rise of the loss with its
	// 95 % interval (NaN: unknown). All are in nats per token.
	WholeModel(ctx context.Context, changed Values) (divergence, loss float64, interval [2]float64, err error)
}

// Record keeps intermediate results of a search, so that an interrupted search can continue. A name may contain slashes.
type Record interface {
	Load(name string, into any) (found bool, err error)
	Save(name string, from any) error
}

// Options are the options of [Spend].
type Options struct {
	Evaluator Evaluator // required
	// Time limits the search, which then returns the best plan found. With a time limit, the search also tries values
	// of lambda between powers of two. 0: no limit; the search tries powers of two only.
	Time time.Duration
	// Record keeps the search's intermediate results; nil: nothing is kept.
	Record Record
	// Measured makes missing curves and sensitivities in Record an [ErrUnmeasured]. Default: they are measured.
	Measured bool
	// Better is called for every model that keeps the budget and saves more energy than all earlier ones, with the
	// model's steps by layer. It may be nil.
	Better func(steps [][]*plan.Step, found plan.Search) error
}

// search is the state of [Spend].
type search struct {
	allocator
	m       *pass.Model
	opt     Options
	maxLoss float64 // budget: largest rise of the loss, nats per token
	lossy   []pass.Choice
	layers  []*pass.Layer
	index   map[string]int // number of a layer, by the weight's name
	found   plan.Search
	start   time.Time
	best    allocation     // allocation of least energy so far
	kept    *plan.Trial    // trial of best; nil: no model has kept the budget
	taken   [][]*plan.Step // steps of best, by layer
}

// searchRounds is the largest number of rounds of a search. A round after the first one tries finer lambdas. It saves
// some hundredths of a per cent of energy, so it runs only with a time limit.
const searchRounds = 4

// Spend distributes m's budget of loss over the layers. It returns the steps of each layer, in the layers' order, and
// a record of the search. If nothing saves energy within the budget, no layer has steps. Errors come from the passes,
// the evaluator, the record, Better and ctx.
func Spend(ctx context.Context, m *pass.Model, layers []*pass.Layer, lossy []pass.Choice, o Options) ([][]*plan.Step, *plan.Search, error) {
	s, err := newSearch(m, layers, lossy, o)
	if err != nil {
		return nil, nil, err
	}
	all := make([]int, len(layers))
	for i := range all {
		all[i] = i
	}
	if err := s.findCurves(ctx, all); err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(s.curves, func(c curve) bool { return len(c) > 1 }) {
		return s.taken, &s.found, nil // no layer has a choice
	}
	if err := s.sensitivities(ctx, all); err != nil {
		return nil, nil, err
	}
	for round := range searchRounds {
		better, err := s.bisect(ctx)
		if err != nil {
			return nil, nil, err
		}
		if !better || s.opt.Time == 0 || s.over() || round == searchRounds-1 {
			break
		}
		if err := s.refine(ctx, round); err != nil {
			return nil, nil, err
		}
	}
	s.estimateFrontier()
	return s.taken, &s.found, nil
}

func newSearch(m *pass.Model, layers []*pass.Layer, lossy []pass.Choice, o Options) (*search, error) {
	if m == nil || m.Context == nil || m.Budget.MaxLoss == nil {
		return nil, errors.New("a search needs a budget of loss: set Budget.MaxLoss of the model's context")
	}
	s := &search{m: m, opt: o, maxLoss: *m.Budget.MaxLoss, lossy: lossy, layers: layers, index: map[string]int{}, start: time.Now()}
	s.found.Budget = Margin * s.maxLoss
	total := 0.0
	for i, l := range layers {
		s.index[l.Weight.Name] = i
		total += float64(l.Rows() * l.Cols())
	}
	for _, l := range layers {
		s.share = append(s.share, float64(l.Rows()*l.Cols())/total)
		l.Freed = m.Freed(l.Weight.Name)
	}
	s.curves, s.taken = make([]curve, len(layers)), make([][]*plan.Step, len(layers))
	return s, nil
}

func (s *search) over() bool { return s.opt.Time > 0 && time.Since(s.start) > s.opt.Time }

func (s *search) report(e progress.Event) {
	if s.m.Progress != nil {
		s.m.Progress(e)
	}
}

// findCurves measures the rate–distortion curves of the layers at the given places.
func (s *search) findCurves(ctx context.Context, places []int) error {
	if s.opt.Measured {
		return s.loadCurves(places)
	}
	return s.m.Parallel(ctx, "curves", len(places), len(places), func(ctx context.Context, n int) (err error) {
		i := places[n]
		l := s.layers[i]
		s.curves[i], err = s.recorded(curveName(l), func() (curve, error) {
			return guardedCurve(l, func() (curve, error) { return curveOf(ctx, l, s.lossy, pass.Lambdas()) })
		})
		return err
	})
}

func guardedCurve(l *pass.Layer, measure func() (curve, error)) (c curve, err error) {
	err = l.Guard(func() (err error) {
		c, err = measure()
		return err
	})
	return c, err
}

// curveName returns the name of a layer's curve in the record.
func curveName(l *pass.Layer) string { return "layers/" + l.Weight.Name }

// recorded loads points from the record. If they are missing, it computes and saves them.
func (s *search) recorded(name string, make func() (curve, error)) (c curve, err error) {
	record := s.opt.Record
	if record == nil {
		return make()
	}
	if found, err := record.Load(name, &c); found || err != nil {
		return c, err
	}
	if c, err = make(); err != nil {
		return nil, err
	}
	return c, record.Save(name, c)
}

// refine adds points to the curves, at lambdas on both sides of each chosen point. Every round halves the distance.
func (s *search) refine(ctx context.Context, round int) error {
	step := elementary.Exp2(-float64(round + 1))
	curves := slices.Clone(s.curves)
	err := s.m.Parallel(ctx, "refine", len(s.layers), len(s.layers), func(ctx context.Context, i int) error {
		l := s.layers[i]
		taken := s.point(s.best, i).Lambda
		if taken == 0 {
			return nil
		}
		near := []float64{taken * elementary.Exp2(-step), taken * elementary.Exp2(step)}
		name := fmt.Sprintf("layers/%s/%g-%g", l.Weight.Name, near[0], near[1])
		more, err := s.recorded(name, func() (curve, error) {
			return guardedCurve(l, func() (curve, error) { return pointsOf(ctx, l, s.lossy, near) })
		})
		curves[i] = append(slices.Clone(curves[i]), more...).hull()
		return err
	})
	if err != nil {
		return err
	}
	for i, c := range curves {
		s.best.choice[i] = c.find(s.point(s.best, i))
	}
	s.curves = curves
	return nil
}

func (s *search) point(a allocation, i int) point { return s.curves[i][a.choice[i]] }
