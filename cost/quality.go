package cost

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// Quality holds a model's errors on families of patterns that its fit did not use.
type Quality struct {
	Points int     `json:"points"`
	Mean   float64 `json:"mean_error"` // mean absolute error of relative energy
	Worst  float64 `json:"worst_error"`
	// Floor is the part of an error that does not grow with the saving, as a standard deviation of relative energy.
	// It includes the noise of one reading. Files of earlier versions have 0, which means earlierFloor.
	Floor float64 `json:"floor,omitempty"`
	// Growth widens the 95 % interval by this much per unit of predicted saving, so that the interval contains 95 %
	// of the points.
	Growth float64 `json:"growth"`
}

// largeError is a mean error of relative energy above which predictions are of little use. The built-in calibration
// has at most 0.024.
const largeError = 0.03

// Doubts lists reasons why the models' predictions may be wrong: few points, and errors that are large or unknown.
func (c *Calibration) Doubts() (list []string) {
	if c == nil {
		return nil
	}
	for _, m := range c.Models {
		of, points := fmt.Sprintf("%s with %s: ", m.Type, placeOf(m.Cold)), 0
		for s := range c.seriesOf([]kind{{m.Type, m.Cold}}) {
			points += len(s.Points) // as Fit counts them: without the baseline
		}
		if points < fewPoints {
			list = append(list, fmt.Sprintf("%s%d points are too few to fit this card alone; the coefficients stay near those of another card: measure at least %d points", of, points, fewPoints))
		}
		switch {
		case m.Quality.Points == 0:
			list = append(list, of+"the prediction errors are unknown, because too few points remain when one kind of pattern is left out: measure more kinds of patterns")
		case m.Quality.Mean > largeError:
			list = append(list, fmt.Sprintf("%sthe mean prediction error of %.1f percentage points is large: check the measurements, or measure more kinds of patterns", of, 100*m.Quality.Mean))
		}
	}
	return list
}

const (
	earlierFloor = 0.003
	// floorUnknown and growthUnknown are the floor and the growth of a model with fewer than fewTested predictions of
	// small or of large savings.
	floorUnknown  = 0.008
	growthUnknown = 0.5
	fewTested     = 10
	// littleSaving is the predicted saving below which errors determine the floor.
	littleSaving = 0.02
	// cardSpread is the standard deviation of a saving between cards of one kind, as a share of the saving.
	// docs/cards.md finds 10 % in prefill and 6 % in decode. cardSpread widens the intervals of models whose points
	// come from one card.
	cardSpread = 0.1
)

// HalfWidth returns half the width of the 95 % interval of a predicted relative energy. The interval is for one
// reading of another card of the kind.
func (q Quality) HalfWidth(energy float64) float64 {
	floor := q.Floor
	if floor == 0 {
		floor = earlierFloor
	}
	return 1.96 * elementary.Hypot(floor, q.Growth*saving(energy))
}

// saving returns the absolute relative change of energy, saved or added.
func saving(energy float64) float64 { return math.Abs(1 - energy) }

// LeftOut is a measured point with its prediction by a model that was fitted without this point and all points of its
// class.
type LeftOut struct {
	Series    *Series
	Point     *Observation
	Predicted float64
	// HalfWidth is half the width of the prediction's 95 % interval, from the errors of the same fit; 0 in
	// [Calibration.LeaveOut].
	HalfWidth float64
	// Repeated is true if the weights are all zero, like those of an earlier point of the series. Several families
	// end with such weights, and errors count them once.
	Repeated bool
}

// Error returns the prediction's error as a share of the baseline's energy; NaN without a point.
func (l LeftOut) Error() float64 {
	if l.Point == nil {
		return math.NaN()
	}
	return l.Predicted - l.Point.Energy
}

// LeaveOut predicts every point of a type by a model and a response that were fitted without the point's class of
// families, and without all-zero weights. prior is the argument of Fit.
func (c *Calibration) LeaveOut(typ arith.Type, cold bool, prior *Calibration) []LeftOut {
	return c.leaveOut([]kind{{typ, cold}}, func(without string) (activityOf, error) {
		m, err := c.fit(kind{typ, cold}, without, prior)
		return c.Facts.coefficients(&m).activity, err
	})
}

// LeaveOutShared is [Calibration.LeaveOut] for several types by models with equal coefficients.
func (c *Calibration) LeaveOutShared(cold bool, types ...arith.Type) []LeftOut {
	var of []kind
	for _, t := range types {
		of = append(of, kind{t, cold})
	}
	return c.leaveOut(of, func(without string) (activityOf, error) {
		m, err := c.fitTo(featuresOf(of[0]), of, without, nil)
		return c.Facts.coefficients(&m).activity, err
	})
}

// LeaveOutChanged is [Calibration.LeaveOut] by models with one more feature. If the models already use the feature,
// it is removed, and without is true.
func (c *Calibration) LeaveOutChanged(feature string, typ arith.Type, cold bool) (list []LeftOut, without bool) {
	of, at := []kind{{typ, cold}}, slices.Index(c.Names, feature)
	use := slices.Clone(featuresOf(of[0]))
	if without = slices.Contains(use, at); without {
		use = slices.DeleteFunc(use, func(i int) bool { return i == at })
	} else {
		use = append(use, at)
	}
	return c.leaveOut(of, func(class string) (activityOf, error) {
		m, err := c.fitTo(use, of, class, nil)
		return c.Facts.coefficients(&m).activity, err
	}), without
}

// activityOf is a fitted model. It returns the activity of features relative to that of a reference.
type activityOf func(s, reference *Features) float64

// leaveOut predicts each point by a fit to the points of all other classes, and by their response.
func (c *Calibration) leaveOut(of []kind, fit func(without string) (activityOf, error)) (list []LeftOut) {
	type fitted struct {
		activity activityOf
		err      error
	}
	models := map[string]fitted{}
	for s := range c.seriesOf(of) {
		responses, zeros := map[string]*Series{}, false
		for p := range s.Points {
			o := &s.Points[p]
			class := o.class()
			m, ok := models[class]
			if !ok {
				m.activity, m.err = fit(class)
				models[class] = m
			}
			if m.err != nil {
				continue // too few points without the class
			}
			r := responses[class]
			if r == nil {
				r = s.without(class)
				c.Facts.Power.respond(r)
				responses[class] = r
			}
			e, _, _ := c.Facts.Power.energyAt(r, m.activity(o.Features, s.Baseline.Features))
			list = append(list, LeftOut{Series: s, Point: o, Predicted: e, Repeated: o.allZero() && zeros})
			zeros = zeros || o.allZero()
		}
	}
	return list
}

// LeaveOutCard predicts the points of a type on each card by a calibration from the other cards alone, with its
// intervals. Points of products that no other card multiplied are left out. prior is the argument of Fit.
func (c *Calibration) LeaveOutCard(typ arith.Type, cold bool, prior *Calibration) (list []LeftOut) {
	k, of := kind{typ, cold}, []kind{{typ, cold}}
	var cards []string
	for s := range c.seriesOf(of) {
		if !slices.Contains(cards, s.Card) {
			cards = append(cards, s.Card)
		}
	}
	for _, card := range cards {
		rest := &Calibration{Facts: c.Facts, Names: c.Names}
		for _, s := range c.Series {
			if s.Card != card {
				rest.Series = append(rest.Series, s)
			}
		}
		m, err := rest.fit(k, "", prior)
		if err != nil {
			continue // no other card multiplied this type
		}
		model, quality := c.Facts.coefficients(&m), rest.quality(k, prior)
		for s := range c.seriesOf(of) {
			near, _ := rest.nearest(s.Product)
			if s.Card != card || near.M != s.M || near.N != s.N || near.K != s.K {
				continue
			}
			for p := range s.Points {
				o := &s.Points[p]
				e, _, _ := c.Facts.Power.energyAt(near, model.activity(o.Features, s.Baseline.Features))
				list = append(list, LeftOut{Series: s, Point: o, Predicted: e, HalfWidth: quality.HalfWidth(e)})
			}
		}
	}
	return list
}

// without returns the series without the points that are left out with a class.
func (s *Series) without(class string) *Series {
	rest := *s
	rest.Points = slices.DeleteFunc(slices.Clone(s.Points), func(o Observation) bool { return o.leftOut(class) })
	return &rest
}

// allZero reports whether the weights are all zero.
func (o *Observation) allZero() bool { return o.Features[weightOnes] == 0 }

// leftOut reports whether the point is left out with a class. The class "" leaves out no point. All-zero weights
// belong to several families, so they are left out with every class.
func (o *Observation) leftOut(class string) bool {
	return class != "" && (o.class() == class || o.allZero())
}

// class returns the name of a group of similar families, from the paper's experiments and from the probes. A group is
// left out as a whole. All weights with zeros at random places are one class, whatever their family.
func (o *Observation) class() string {
	if o.allZero() || strings.Contains(o.W, "sparse(") {
		return "zeros"
	}
	if class, ok := classes[o.Family]; ok {
		return class
	}
	return o.Family
}

var classes = map[string]string{
	"3a": "spread", "3b": "shift", "3c": "values", "constant": "values", "few values": "values",
	"5a": "sort", "5b": "sort", "5c": "sort", "5d": "sort", "6b": "sort",
	"6c": "coarse", "6d": "coarse", "round": "coarse", "grid": "coarse", "mixed": "coarse",
	"4a": "random bits", "4b": "random bits", "4c": "random bits", "bits": "random bits",
}

// quality returns the quality of the model of a kind, from the left-out points.
func (c *Calibration) quality(k kind, prior *Calibration) Quality {
	q := qualityOf(c.LeaveOut(k.typ, k.cold, prior))
	card, several := "", false
	for s := range c.seriesOf([]kind{k}) {
		several = several || card != "" && s.Card != card
		card = s.Card
	}
	if !several {
		q.Growth = round5(elementary.Hypot(q.Growth, cardSpread))
	}
	return q
}

func qualityOf(list []LeftOut) (q Quality) {
	list = slices.DeleteFunc(slices.Clone(list), func(l LeftOut) bool { return l.Repeated })
	var floors, growths []float64
	for _, l := range list {
		e := math.Abs(l.Error())
		q.Points++
		q.Mean += e
		q.Worst = math.Max(q.Worst, e)
		if saving(l.Predicted) < littleSaving {
			floors = append(floors, e/1.96)
		}
	}
	q.Floor = quantile95(floors, floorUnknown)
	for _, l := range list {
		if s := saving(l.Predicted); s >= littleSaving { // least growth whose interval contains the point
			e := l.Error() / 1.96
			growths = append(growths, math.Sqrt(math.Max(0, float64(e*e)-float64(q.Floor*q.Floor)))/s)
		}
	}
	q.Mean, q.Worst = round5(q.Mean/float64(max(1, q.Points))), round5(q.Worst)
	q.Growth = quantile95(growths, growthUnknown)
	return q
}

// quantile95 returns the 95 % quantile. If there are fewer than fewTested values, it returns unknown.
func quantile95(values []float64, unknown float64) float64 {
	if len(values) < fewTested {
		return unknown
	}
	slices.Sort(values)
	return round5(values[len(values)*95/100])
}

func round5(v float64) float64 { return math.Round(v*1e5) / 1e5 }

// Rival is a simpler model of the same measurements, for comparison: a line through a few features, by ordinary least
// squares.
type Rival struct {
	Name     string
	features []int
}

// Rivals are simple models: the two quantities of the first paper's Figure 8 (set bits, and equal bits in elements
// multiplied together), and plain counts of toggles.
var Rivals = []Rival{
	{"Hamming weight and alignment", []int{busOnes, bitAlignment}},
	{"toggles of both operands", []int{streamingToggles, stationaryToggles}},
}

// LeaveOutBy is LeaveOut with a rival's model.
func (c *Calibration) LeaveOutBy(r Rival, typ arith.Type, cold bool) []LeftOut {
	of := []kind{{typ, cold}}
	return c.leaveOut(of, func(without string) (activityOf, error) {
		var rows, y []float64
		for s := range c.seriesOf(of) {
			for p := range s.Points {
				if o := &s.Points[p]; !o.leftOut(without) {
					rows, y = append(rows, terms(r.features, o.Features, s.Baseline.Features)...), append(y, c.Facts.Power.activity(s, o))
				}
			}
		}
		n := 1 + len(r.features)
		var c mat.VecDense
		if len(y) < n {
			return nil, fmt.Errorf("%d points are too few", len(y))
		}
		if err := c.SolveVec(mat.NewDense(len(y), n, rows), mat.NewVecDense(len(y), y)); err != nil {
			return nil, err
		}
		return func(s, reference *Features) (sum float64) {
			for i, v := range terms(r.features, s, reference) {
				sum += float64(c.AtVec(i) * v)
			}
			return sum
		}, nil
	})
}
