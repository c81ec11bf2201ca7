// Package search decides what the lossy passes do to each linear layer of a model.
//
// Under a budget of output SNR every layer is decided alone ([Choose]). A budget of loss is spent where it saves
// most energy ([Spend]): rate–distortion curves of all layers, sensitivities of the model's outputs to errors of
// single layers, an allocation by one Lagrangian multiplier λ, and trials of whole models by which the
// allocation is bisected.
package search

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Values gives tensors by name, decoded, as the source stores them; nil for one that is to stay as it is.
type Values = interface {
	Tensor(ctx context.Context, name string) ([]float32, error)
}

// Evaluator tells how far a model with other weights diverges from the source, on tokens that no value is fitted
// to.
type Evaluator interface {
	// PerLayer reports for each layer by how many nats per token (KL) the outputs diverge from the source's
	// where that layer alone is changed's and the others are base's (nil: the source's own).
	PerLayer(ctx context.Context, base, changed Values, done func(layer string, nats float64) error) error
	// WholeModel is the divergence where all layers are changed's, and by how much the loss rises, in nats
	// per token with its 95 % interval.
	WholeModel(ctx context.Context, changed Values) (divergence, loss float64, interval [2]float64, err error)
}

// Record keeps what a search has found. Names are those of files.
type Record interface {
	Load(name string, into any) (found bool, err error)
	Save(name string, from any) error
}

// Options are what a budget of loss is spent with.
type Options struct {
	Evaluator Evaluator // required
	// Time after which the best plan found is taken. The time is used for choices finer than powers of two.
	// 0: these are not tried, and the search ends when the budget is spent.
	Time time.Duration
	// Record gives back what an earlier search found under the same name; nil: nothing is kept.
	Record Record
	// Better is called with the steps, by layer, of every model that is better than those before; may be nil.
	Better func(steps [][]*plan.Step, found plan.Search) error
}

// search is one budget's spending on a whole model.
type search struct {
	allocator
	m       *pass.Model
	opt     Options
	maxLoss float64
	lossy   []pass.Choice
	layers  []*pass.Layer
	index   map[string]int // of a layer by its weight
	found   plan.Search
	start   time.Time
	best    allocation     // around which finer choices are made
	kept    *plan.Trial    // of best; nil: no model kept the budget
	taken   [][]*plan.Step // in it, by layer
}

// searchRounds of finer choices at most. A second one gains some hundredths of a per cent: it is for those who give
// it time.
const searchRounds = 4

// Spend divides m's budget of loss among layers and returns the steps of each, in the layers' order, and what was
// found on the way.
func Spend(ctx context.Context, m *pass.Model, layers []*pass.Layer, lossy []pass.Choice, o Options) ([][]*plan.Step, *plan.Search, error) {
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
	s.taken = make([][]*plan.Step, len(layers))
	if err := s.findCurves(ctx); err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(s.curves, func(c curve) bool { return len(c) > 1 }) {
		return s.taken, &s.found, nil // nothing to choose among
	}
	if err := s.sensitivities(ctx); err != nil {
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

func (s *search) over() bool { return s.opt.Time > 0 && time.Since(s.start) > s.opt.Time }

func (s *search) report(e progress.Event) {
	if s.m.Progress != nil {
		s.m.Progress(e)
	}
}

// progress of a stage that takes one layer after the other.
func (s *search) progress(stage string, done int) {
	s.report(progress.Event{Stage: stage, Done: int64(done), Total: int64(len(s.layers))})
}

// findCurves finds the rate–distortion curves of all layers.
func (s *search) findCurves(ctx context.Context) error {
	s.curves = make([]curve, len(s.layers))
	return s.m.Parallel(ctx, "curves", len(s.layers), len(s.layers), func(ctx context.Context, i int) (err error) {
		l := s.layers[i]
		s.curves[i], err = s.recorded("layers/"+l.Weight.Name, func() (curve, error) {
			return curveOf(ctx, l, s.lossy, pass.Lambdas())
		})
		return err
	})
}

// recorded takes points from the record, or makes and records them.
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

// refine adds what lies between the choices taken and their neighbours.
func (s *search) refine(ctx context.Context, round int) error {
	step := math.Exp2(-float64(round + 1))
	curves := slices.Clone(s.curves)
	err := s.m.Parallel(ctx, "refine", len(s.layers), len(s.layers), func(ctx context.Context, i int) error {
		l := s.layers[i]
		taken := s.point(s.best, i).Lambda
		if taken == 0 {
			return nil
		}
		near := []float64{taken * math.Exp2(-step), taken * math.Exp2(step)}
		name := fmt.Sprintf("layers/%s/%g-%g", l.Weight.Name, near[0], near[1])
		more, err := s.recorded(name, func() (curve, error) { return pointsOf(ctx, l, s.lossy, near) })
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
