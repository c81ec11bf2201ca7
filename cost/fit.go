package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/nnls"
)

const (
	constantTerm = "constant"
	// ridge keeps features that go together from taking extreme shares; priorRidge holds a fit to
	// few points close to another one.
	ridge      = 1e-4
	priorRidge = 0.005
	fewPoints  = 40
	// bothShare is what a point counts in which x changes as well: the weights are what is asked about.
	bothShare = 0.25
	// readingError is the part of a prediction's error that does not grow with what is saved.
	readingError = 0.003
)

// kind of products that share a model.
type kind struct {
	typ  arith.Type
	cold bool
}

func (s *Series) kind() kind { return kind{s.Type, s.Cold} }

// Fit fits all models to the calibration's series, each by non-negative least squares over the
// features relative to the baseline's, and judges them by leaving out one family of patterns after
// the other. swapped tells the types of which the library streams the other operand. Where a type
// has few points its coefficients are drawn towards those of prior, the calibration of another card;
// nil: towards 0.
func (c *Calibration) Fit(swapped func(typ arith.Type) bool, prior *Calibration) error {
	c.Version, c.Names, c.Models = calibrationVersion, c.Facts.featureNames(), nil
	if len(c.Series) == 0 {
		return errors.New("there are no measurements to fit a model to")
	}
	for i := range c.Series {
		c.Facts.Power.respond(&c.Series[i])
	}
	for _, k := range c.kinds() {
		m, err := c.fit(k, "", prior)
		if err != nil {
			continue // too few points: the type is not known
		}
		m.Swapped = swapped(k.typ)
		c.Models = append(c.Models, m)
	}
	if len(c.Models) == 0 {
		return errors.New("no type has the 8 points that a fit takes: let lowtoggle calibrate come to its end")
	}
	c.share()
	for i := range c.Models {
		m := &c.Models[i]
		m.Quality = quality(c.LeaveOut(m.Type, m.Cold, prior))
	}
	return c.validate()
}

// share finds Facts.LagShares from BF16's models, where there are some.
func (c *Calibration) share() {
	round := func(v float64) float64 { return math.Round(v*1e5) / 1e5 }
	shares := &c.Facts.LagShares
	if m := c.model(arith.BF16, false); m != nil {
		of, streaming := c.Facts.coefficients(m).of, 0.0
		for _, feature := range streamFeatures {
			streaming += of[feature]
		}
		shares.Streaming, shares.Line = round(streaming), round(of[busLine]/2) // half of what moves is the weights
	}
	if m := c.model(arith.BF16, true); m != nil {
		of := c.Facts.coefficients(m).of
		shares.Element, shares.Sector = of[weightElement], of[weightSector]
	}
}

func (c *Calibration) kinds() (list []kind) {
	for i := range c.Series {
		if k := c.Series[i].kind(); !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// fit a model to the points of all families but one.
func (c *Calibration) fit(k kind, without string, prior *Calibration) (Model, error) {
	use, names := featuresOf(k.cold), c.Facts.featureNames()
	var rows, y []float64
	for i := range c.Series {
		s := &c.Series[i]
		if s.kind() != k {
			continue
		}
		rows, y = append(rows, slices.Repeat([]float64{1}, 1+len(use))...), append(y, 1)
		for p := range s.Points {
			if o := &s.Points[p]; o.class() != without {
				weight := 1.0
				if s.Change != "weights" {
					weight = math.Sqrt(bothShare)
				}
				for _, v := range terms(use, o.Features, s.Baseline.Features) {
					rows = append(rows, weight*v)
				}
				y = append(y, weight*c.Facts.Power.activity(s, o))
			}
		}
	}
	if len(y) < 8 {
		return Model{}, fmt.Errorf("%s: %d points are too few to fit a model to", k.typ, len(y))
	}
	strength, towards := ridge, make([]float64, 1+len(use))
	if m := c.prior(k, len(y), without, prior); m != nil {
		strength = priorRidge
		towards[0] = m.Coefficients[constantTerm]
		for i, feature := range use {
			towards[1+i] = m.Coefficients[names[feature]]
		}
	}
	found := nnls.Solve(mat.NewDense(len(y), 1+len(use), rows), y, strength, towards)
	m := Model{Type: k.typ, Cold: k.cold, Coefficients: map[string]float64{}}
	sum := 0.0
	for _, v := range found {
		sum += v
	}
	for i, v := range found { // so that random operands have an activity of 1
		if v = math.Round(v/sum*1e5) / 1e5; v == 0 {
			continue
		}
		name := constantTerm
		if i > 0 {
			name = names[use[i-1]]
		}
		m.Coefficients[name] = v
	}
	return m, nil
}

// prior is what a fit to so many points is drawn towards, nil where these are enough: another
// card's model, or, of weights from memory, which passes all types alike, that of the type with the
// most points.
func (c *Calibration) prior(k kind, points int, without string, other *Calibration) *Model {
	if points >= fewPoints {
		return nil
	}
	if other != nil {
		if without == "" {
			return other.model(k.typ, k.cold)
		}
		m, err := other.fit(k, without, nil) // nor may it have seen the family
		if err != nil {
			return nil
		}
		return &m
	}
	most, best := fewPoints, kind{}
	for _, o := range c.kinds() {
		n := 0
		for i := range c.Series {
			if c.Series[i].kind() == o {
				n += len(c.Series[i].Points)
			}
		}
		if o.cold && k.cold && n > most {
			most, best = n, o
		}
	}
	if best == (kind{}) {
		return nil
	}
	m, err := c.fit(best, without, nil)
	if err != nil {
		return nil
	}
	return &m
}

// terms are 1 and the features over those of a reference.
func terms(use []int, s, reference *Features) []float64 {
	list := []float64{1}
	for _, i := range use {
		list = append(list, relative(s[i], reference[i]))
	}
	return list
}

// relative to a reference that may have nothing of it, or of which it is not known.
func relative(v, reference float64) float64 {
	switch {
	case math.IsNaN(v) || math.IsNaN(reference):
		return 1
	case reference == 0:
		return v
	}
	return v / reference
}

// coefficients of a model: its constant and, in their order, those of the features.
type coefficients struct {
	constant float64
	of       Features
}

func (f *Facts) coefficients(m *Model) *coefficients {
	c := &coefficients{constant: m.Coefficients[constantTerm]}
	for i, name := range f.featureNames() {
		c.of[i] = m.Coefficients[name]
	}
	return c
}

// activity of features over that of a reference.
func (c *coefficients) activity(s, reference *Features) float64 {
	sum := c.constant
	for i, v := range c.of {
		if v != 0 {
			sum += v * relative(s[i], reference[i])
		}
	}
	return sum
}

// Judged is a measured point and what was predicted for it.
type Judged struct {
	Series    *Series
	Point     *Observation
	Predicted float64
}

// Error is what the prediction is off by, as a part of the baseline's energy.
func (j Judged) Error() float64 { return j.Predicted - j.Point.Energy }

// LeaveOut predicts every point of a type by a model fitted without the point's family; prior is
// that of Fit.
func (c *Calibration) LeaveOut(typ arith.Type, cold bool, prior *Calibration) []Judged {
	return c.judge(kind{typ, cold}, func(k kind, without string) (func(s, reference *Features) float64, error) {
		m, err := c.fit(k, without, prior)
		return c.Facts.coefficients(&m).activity, err
	})
}

// judge predicts points by what fit makes of all classes but theirs, and by the response that the
// others show.
func (c *Calibration) judge(k kind, fit func(k kind, without string) (func(s, reference *Features) float64, error)) (list []Judged) {
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
		responses := map[string]*Series{}
		for p := range s.Points {
			o := &s.Points[p]
			class := o.class()
			m, ok := models[class]
			if !ok {
				m.activity, m.err = fit(k, class)
				models[class] = m
			}
			if m.err != nil {
				continue // too few without it: nothing can be said
			}
			r := responses[class]
			if r == nil {
				r = s.without(class)
				c.Facts.Power.respond(r)
				responses[class] = r
			}
			e, _, _ := c.Facts.Power.energyAt(r, m.activity(o.Features, s.Baseline.Features))
			list = append(list, Judged{s, o, e})
		}
	}
	return list
}

// without is the series as though a class of points had not been measured.
func (s *Series) without(class string) *Series {
	rest := *s
	rest.Points = slices.DeleteFunc(slices.Clone(s.Points), func(o Observation) bool { return o.class() == class })
	return &rest
}

// class is the name under which families are left out together: those that are of one kind, of the
// paper's experiments and the probes.
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

func quality(judged []Judged) (q Quality) {
	var growths []float64
	for _, j := range judged {
		e := math.Abs(j.Error())
		q.Points++
		q.Mean += e
		q.Worst = math.Max(q.Worst, e)
		// What the interval would have to grow by to hold the point.
		missing := math.Sqrt(math.Max(0, e*e/1.96/1.96-readingError*readingError))
		growths = append(growths, missing/saved(j.Predicted))
	}
	round := func(v float64) float64 { return math.Round(v*1e5) / 1e5 }
	q.Mean = round(q.Mean / float64(max(1, q.Points)))
	q.Worst = round(q.Worst)
	q.Growth = unjudged
	if len(growths) >= fewJudged {
		slices.Sort(growths)
		q.Growth = round(growths[len(growths)*95/100])
	}
	return q
}

// unjudged is the growth of the interval of a model that too few points tell of.
const (
	unjudged  = 0.5
	fewJudged = 10
)

// HalfWidth of the 95 % interval of a predicted energy.
func (q Quality) HalfWidth(energy float64) float64 {
	return 1.96 * math.Hypot(readingError, q.Growth*saved(energy))
}

// saved is what an interval grows with: the part of the energy that is saved, or a little where there
// is none, for that may be wrong as well.
func saved(energy float64) float64 { return math.Max(0.01, math.Abs(1-energy)) }
