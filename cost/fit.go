package cost

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/nnls"
)

const (
	constantTerm = "constant"
	// ridge avoids extreme coefficients of correlated features.
	ridge = 1e-4
	// priorRidge draws a fit to fewer than fewPoints points towards the prior.
	priorRidge = 0.005
	fewPoints  = 40
	// bothShare is the weight of a point in which x changes too, because predictions are about the weights.
	bothShare = 0.25
	// leastRange is the least range of a feature over the points of a fit, relative to the baseline. A feature with a
	// smaller range cannot be distinguished from the constant.
	leastRange = 0.1
)

// kind is a kind of products that share a model.
type kind struct {
	typ  arith.Type
	cold bool
}

func (s *Series) kind() kind { return kind{s.Type, s.Cold} }

// Fit fits a model of each type to the calibration's series, by non-negative least squares over the features relative
// to the baseline's. It computes the model's Quality by leaving out one family of patterns after the other. swapped
// reports the types whose library call streams the other operand; nil: none. If a type has few points, its
// coefficients are drawn towards those of prior, the calibration of another card; nil: towards 0. Fit also computes
// the facts' LagShares. All other facts must be set before.
func (c *Calibration) Fit(swapped func(typ arith.Type) bool, prior *Calibration) error {
	c.Version, c.Names, c.Models = calibrationVersion, c.Facts.featureNames(), nil
	if len(c.Series) == 0 {
		return errors.New("there are no measurements to fit a model to: give at least one series")
	}
	for i := range c.Series {
		c.Facts.Power.respond(&c.Series[i])
	}
	for _, k := range c.kinds() {
		m, err := c.fit(k, "", prior)
		if err != nil {
			continue // too few points for a model of this type
		}
		m.Swapped = swapped != nil && swapped(k.typ)
		c.Models = append(c.Models, m)
	}
	if len(c.Models) == 0 {
		return errors.New("no type has the 8 points that a fit needs: run lowtoggle calibrate again; it continues where it stopped")
	}
	c.fitLagShares()
	for i := range c.Models {
		m := &c.Models[i]
		m.Quality = c.quality(kind{m.Type, m.Cold}, prior)
	}
	return c.validate()
}

// fitLagShares sets Facts.LagShares from BF16's models, if they exist.
func (c *Calibration) fitLagShares() {
	shares := &c.Facts.LagShares
	if m := c.model(arith.BF16, false); m != nil {
		of, streaming := c.Facts.coefficients(m).of, 0.0
		for _, feature := range streamFeatures {
			streaming += of[feature]
		}
		shares.Streaming, shares.Line = round5(streaming), round5(of[busLine]/2) // the weights are half of the bytes
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

// fit fits a model to the points of all classes but one.
func (c *Calibration) fit(k kind, without string, prior *Calibration) (Model, error) {
	return c.fitTo(featuresOf(k), []kind{k}, without, prior)
}

// fitTo fits one model to the given features of all these kinds.
func (c *Calibration) fitTo(use []int, of []kind, without string, prior *Calibration) (Model, error) {
	names, k := c.Facts.featureNames(), of[0]
	use = slices.DeleteFunc(slices.Clone(use), func(feature int) bool { return !c.varies(feature, of, without) })
	var rows, y []float64
	for s := range c.seriesOf(of) {
		rows, y = append(rows, slices.Repeat([]float64{1}, 1+len(use))...), append(y, 1)
		for p := range s.Points {
			if o := &s.Points[p]; !o.leftOut(without) {
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
		return Model{}, fmt.Errorf("%s: %d points are too few to fit a model to: measure at least 8", k.typ, len(y))
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
		if v = round5(v / sum); v == 0 {
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

// seriesOf yields the series of these kinds.
func (c *Calibration) seriesOf(of []kind) iter.Seq[*Series] {
	return func(yield func(*Series) bool) {
		for i := range c.Series {
			if s := &c.Series[i]; slices.Contains(of, s.kind()) && !yield(s) {
				return
			}
		}
	}
}

// varies reports whether a fit can determine a feature's coefficient.
func (c *Calibration) varies(feature int, of []kind, without string) bool {
	least, most := 1.0, 1.0
	for s := range c.seriesOf(of) {
		for p := range s.Points {
			if o := &s.Points[p]; !o.leftOut(without) {
				v := relative(o.Features[feature], s.Baseline.Features[feature])
				least, most = min(least, v), max(most, v)
			}
		}
	}
	return most-least >= leastRange
}

// prior returns the model towards which a fit to few points is shrunk; nil if there are enough points. It is the other
// card's model. Without another card, weights from memory take the model of the type with the most points, because
// memory moves all types in the same way.
func (c *Calibration) prior(k kind, points int, without string, other *Calibration) *Model {
	if points >= fewPoints {
		return nil
	}
	if other != nil {
		if without == "" {
			return other.model(k.typ, k.cold)
		}
		m, err := other.fit(k, without, nil) // the prior must not use the left-out family either
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
	m, err := c.fitTo(featuresOf(k), []kind{best}, without, nil)
	if err != nil {
		return nil
	}
	return &m
}

// terms returns 1 and the features relative to those of a reference.
func terms(use []int, s, reference *Features) []float64 {
	list := []float64{1}
	for _, i := range use {
		list = append(list, relative(s[i], reference[i]))
	}
	return list
}

// relative returns v relative to a reference, which may be 0 or unknown.
func relative(v, reference float64) float64 {
	switch {
	case math.IsNaN(v) || math.IsNaN(reference):
		return 1
	case reference == 0:
		return v
	}
	return v / reference
}

// coefficients are a model's constant and the coefficients of its features, in order.
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

// activity returns the activity of features relative to that of a reference.
func (c *coefficients) activity(s, reference *Features) float64 {
	sum := c.constant
	for i, v := range c.of {
		if v != 0 {
			sum += float64(v * relative(s[i], reference[i]))
		}
	}
	return sum
}
