package cost

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Quality holds a model's errors on families of patterns that its fit did not see.
type Quality struct {
	Points int     `json:"points"`
	Mean   float64 `json:"mean_error"` // of relative energy, absolute
	Worst  float64 `json:"worst_error"`
	// Growth widens the 95 % interval by this much per unit of predicted saving, so that the interval holds
	// 95 % of the points.
	Growth float64 `json:"growth"`
}

const (
	// readingError is the part of a prediction's error, as a standard deviation of relative energy, that does
	// not grow with the saving.
	readingError = 0.003
	// growthUnknown is the growth of a model with fewer than fewTested predictions.
	growthUnknown = 0.5
	fewTested     = 10
)

// HalfWidth returns half the width of the 95 % interval of a predicted relative energy.
func (q Quality) HalfWidth(energy float64) float64 {
	return 1.96 * math.Hypot(readingError, q.Growth*saving(energy))
}

// saving is the share of the energy that is saved, at least 1 %: a prediction of no saving may be wrong too.
func saving(energy float64) float64 { return math.Max(0.01, math.Abs(1-energy)) }

// LeftOut is a measured point and its prediction by a model that was fitted without the point's family.
type LeftOut struct {
	Series    *Series
	Point     *Observation
	Predicted float64
	// Repeated is true if the weights are all zero, like those of an earlier point of the series. Several families end with
	// such weights; errors count them once.
	Repeated bool
}

// Error returns the prediction's error as a share of the baseline's energy.
func (l LeftOut) Error() float64 { return l.Predicted - l.Point.Energy }

// LeaveOut predicts every point of a type by a model that was fitted without the point's family. prior is
// that of Fit.
func (c *Calibration) LeaveOut(typ arith.Type, cold bool, prior *Calibration) []LeftOut {
	return c.leaveOut(kind{typ, cold}, func(k kind, without string) (func(s, reference *Features) float64, error) {
		m, err := c.fit(k, without, prior)
		return c.Facts.coefficients(&m).activity, err
	})
}

// leaveOut predicts each point by a fit to the points of all other classes, and by the response to them.
func (c *Calibration) leaveOut(k kind, fit func(k kind, without string) (func(s, reference *Features) float64, error)) (list []LeftOut) {
	type fitted struct {
		activity func(s, reference *Features) float64
		err      error
	}
	models := map[string]fitted{}
	for i := range c.Series {
		s := &c.Series[i]
		if s.kind() != k {
			continue
		}
		responses, zeros := map[string]*Series{}, false
		for p := range s.Points {
			o := &s.Points[p]
			class := o.class()
			m, ok := models[class]
			if !ok {
				m.activity, m.err = fit(k, class)
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
			zero := o.Features[weightOnes] == 0
			list = append(list, LeftOut{s, o, e, zero && zeros})
			zeros = zeros || zero
		}
	}
	return list
}

// without is the series without the points of a class.
func (s *Series) without(class string) *Series {
	rest := *s
	rest.Points = slices.DeleteFunc(slices.Clone(s.Points), func(o Observation) bool { return o.class() == class })
	return &rest
}

// class names the families that are left out together because they are alike, of the paper's experiments
// and of the probes.
func (o *Observation) class() string {
	if class, ok := classes[o.Family]; ok {
		return class
	}
	return o.Family
}

var classes = map[string]string{
	"3a": "spread", "3b": "shift", "3c": "values", "constant": "values", "few values": "values",
	"5a": "sort", "5b": "sort", "5c": "sort", "5d": "sort", "6b": "sort",
	"6a": "zeros", "sparse": "zeros", "blocks": "zeros",
	"6c": "coarse", "round": "coarse", "grid": "coarse",
	"4a": "random bits", "4b": "random bits", "4c": "random bits", "bits": "random bits",
}

func qualityOf(list []LeftOut) (q Quality) {
	var growths []float64
	for _, l := range list {
		e := math.Abs(l.Error())
		if !l.Repeated {
			q.Points++
			q.Mean += e
			q.Worst = math.Max(q.Worst, e)
		}
		// The growth with which the interval just holds the point.
		missing := math.Sqrt(math.Max(0, e*e/1.96/1.96-readingError*readingError))
		growths = append(growths, missing/saving(l.Predicted))
	}
	round := func(v float64) float64 { return math.Round(v*1e5) / 1e5 }
	q.Mean = round(q.Mean / float64(max(1, q.Points)))
	q.Worst = round(q.Worst)
	q.Growth = growthUnknown
	if len(growths) >= fewTested {
		slices.Sort(growths)
		q.Growth = round(growths[len(growths)*95/100])
	}
	return q
}

// Rival is a simpler model of the same measurements, for comparison: a line through a few features, by
// ordinary least squares.
type Rival struct {
	Name     string
	features []int
}

// Rivals are the obvious simple models: the two quantities of the first paper's Figure 8 (bits that are set,
// and bits that are alike in elements multiplied together), and plain counts of toggles.
var Rivals = []Rival{
	{"Hamming weight and alignment", []int{busOnes, bitAlignment}},
	{"toggles of both operands", []int{streamingToggles, stationaryToggles}},
}

// LeaveOutBy is LeaveOut with a rival's model.
func (c *Calibration) LeaveOutBy(r Rival, typ arith.Type, cold bool) []LeftOut {
	return c.leaveOut(kind{typ, cold}, func(k kind, without string) (func(s, reference *Features) float64, error) {
		var rows, y []float64
		for i := range c.Series {
			s := &c.Series[i]
			for p := range s.Points {
				if o := &s.Points[p]; s.kind() == k && o.class() != without {
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
				sum += c.AtVec(i) * v
			}
			return sum
		}, nil
	})
}
