package transform

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Values gives tensors by name, decoded, as the source stores them; nil for one that is to stay as it
// is.
type Values = interface {
	Tensor(ctx context.Context, name string) ([]float32, error)
}

// Judge runs the model on tokens that no input was taken from.
type Judge interface {
	// PerLayer reports for each layer by how many nats per token the outputs diverge from the model's
	// where that layer alone is changed's and the others are base's (nil: the model's own).
	PerLayer(ctx context.Context, base, changed Values, done func(layer string, nats float64) error) error
	// WholeModel is the same where all layers are changed's, and by how much the loss rises, in nats
	// with its 95 % interval.
	WholeModel(ctx context.Context, changed Values) (divergence, loss float64, interval [2]float64, err error)
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

// search is one budget's spending on a whole model.
type search struct {
	p       *planner
	passes  []Choice // the lossy ones
	targets []*target
	index   map[string]int // of a target by its tensor
	trade   trade
	frees   []float64
	found   Found
	start   time.Time
	best    offer     // around which finer choices are made
	kept    *Trial    // of best; nil: no model kept the budget
	taken   [][]*Step // in it, by target
}

// searchRounds of finer choices at most. A second one gains some hundredths of a per cent: it is for
// those who give it time.
const searchRounds = 4

// search spends the budget: what may be had of each layer, what an error of each costs, then whole
// models whose price is bisected until the outputs diverge as far as they may; then again with finer
// choices around those taken.
func (p *planner) search(targets []*target, lossy []Choice) ([][]*Step, error) {
	s := &search{p: p, passes: lossy, targets: targets, index: map[string]int{}, start: time.Now(), found: Found{Budget: Margin * *p.opt.MaxLoss}}
	total := 0.0
	for i, t := range targets {
		s.index[t.tensor.Name] = i
		total += float64(t.tensor.Len())
	}
	for _, t := range targets {
		s.trade.share = append(s.trade.share, float64(t.tensor.Len())/total)
		s.frees = append(s.frees, p.frees(t.tensor.Name))
	}
	s.taken = make([][]*Step, len(targets))
	p.plan.Found = &s.found
	if err := s.curves(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(s.trade.curves, func(c curve) bool { return len(c) > 1 }) {
		return s.taken, nil // nothing to choose among
	}
	if err := s.alone(); err != nil {
		return nil, err
	}
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
	return s.taken, nil
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

// curves of all targets.
func (s *search) curves() error {
	s.trade.curves = make([]curve, len(s.targets))
	return s.p.parallel(s.p.ctx, "try", len(s.targets), len(s.targets), func(i int) (err error) {
		t := s.targets[i]
		if t.base, err = t.compile(); err != nil {
			return err
		}
		s.trade.curves[i], err = s.recorded("layers/"+t.tensor.Name, func() (curve, error) {
			return t.curve(s.passes, s.frees[i], lambdas())
		})
		return err
	})
}

// recorded takes points from the record, or makes and records them.
func (s *search) recorded(name string, make func() (curve, error)) (c curve, err error) {
	record := s.p.opt.Search.Record
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
func (s *search) refine(round int) error {
	step := math.Exp2(-float64(round + 1))
	curves := slices.Clone(s.trade.curves)
	err := s.p.parallel(s.p.ctx, "refine", len(s.targets), len(s.targets), func(i int) error {
		t := s.targets[i]
		taken := trellisOf(s.point(s.best, i).Steps)
		if taken == nil {
			return nil
		}
		near := []float64{taken.Lambda * math.Exp2(-step), taken.Lambda * math.Exp2(step)}
		name := fmt.Sprintf("layers/%s/%g-%g", t.tensor.Name, near[0], near[1])
		more, err := s.recorded(name, func() (curve, error) { return t.points(s.passes, s.frees[i], near) })
		curves[i] = append(slices.Clone(curves[i]), more...).hull()
		return err
	})
	if err != nil {
		return err
	}
	for i, c := range curves {
		s.best.choice[i] = c.find(s.point(s.best, i))
	}
	s.trade.curves = curves
	return nil
}

func (s *search) point(o offer, i int) point { return s.trade.curves[i][o.choice[i]] }
