package paper

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Effect is the measured change that decides whether a takeaway holds in one setup.
type Effect struct {
	Setup experiment.Setup
	// Energy is the relative change of a product's energy: −0.1 is a tenth less. NaN if the takeaway is about power
	// only.
	Energy    float64
	HalfWidth float64 // of Energy's 95 % interval, as if it were the only change; NaN: not known
	Power     float64 // relative change of the mean power
	Where     string  // what was compared, if the rule leaves it open
	Outcome   Outcome
	decision  decision
}

// decision is a comparison of a change with a limit.
type decision struct {
	change, halfWidth float64
	freedom           float64 // degrees of freedom of the interval
	largestOf         int     // the number of changes of which this one was picked as the largest
	below             bool    // the takeaway holds if the change is below the limit, else if it is above
	limit             float64
}

// Outcome states whether a takeaway holds in a setup.
type Outcome string

// The outcomes of a takeaway in a setup.
const (
	Holds Outcome = "holds"
	Fails Outcome = "does not hold"
	Open  Outcome = "undecided" // the interval is not known, or includes both outcomes
)

// MarshalJSON writes all fields but unknown (NaN) ones.
func (e Effect) MarshalJSON() ([]byte, error) {
	known := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	var low, high *float64
	if e.decision.largestOf > 1 {
		l, h := e.decision.interval(1)
		low, high = known(l), known(h)
	}
	return json.Marshal(struct {
		Setup     string   `json:"setup"`
		Energy    *float64 `json:"energy,omitempty"`
		HalfWidth *float64 `json:"half_width,omitempty"`
		Power     *float64 `json:"power,omitempty"`
		Where     string   `json:"where,omitempty"`
		// Low and High are the interval, if the change is the largest of several.
		Low     *float64 `json:"low,omitempty"`
		High    *float64 `json:"high,omitempty"`
		Outcome Outcome  `json:"outcome"`
	}{e.Setup.String(), known(e.Energy), known(e.HalfWidth), known(e.Power), e.Where, low, high, e.Outcome})
}

// confidence of all intervals.
const confidence = 0.95

// change returns the change from one result to another of the same setup. Its interval combines the intervals of the two results.
// If these have different degrees of freedom, the interval contains the true change in at least 95 % of cases: Banerjee, "On Confidence
// Interval for Two-Means Problem", Sankhyā A 23 (1961).
func change(from, to Result) Effect {
	ratio := to.Relative / from.Relative
	return Effect{
		Setup:     to.Setup,
		Energy:    ratio - 1,
		HalfWidth: ratio * math.Hypot(from.HalfWidth/from.Relative, to.HalfWidth/to.Relative),
		Power:     to.Watts/from.Watts - 1,
		decision:  decision{freedom: min(from.Freedom, to.Freedom)},
	}
}

// falls decides that the takeaway holds if the energy falls by more than the interval.
func (e Effect) falls() Effect { return e.decide(true, 0, 1) }

// rises decides that the takeaway holds if the energy rises by more than the interval.
func (e Effect) rises() Effect { return e.decide(false, 0, 1) }

// decide sets the outcome. The takeaway holds if the whole interval of the energy's change is below the limit (above it, if below is
// false). The takeaway fails if the whole interval is on the other side. largestOf is the number of changes of which this one was
// picked as the largest.
func (e Effect) decide(below bool, limit float64, largestOf int) Effect {
	e.decision = decision{e.Energy, e.HalfWidth, e.decision.freedom, largestOf, below, limit}
	e.Outcome = e.decision.outcome(1)
	return e
}

// amongAll changes the outcome Fails to Open unless the takeaway also fails in an interval that is corrected for the number of
// setups. Without the correction one setup in 40 would fail by chance. The outcome Holds in all setups needs no correction.
func (e Effect) amongAll(setups int) Effect {
	if e.Outcome == Fails && e.decision.outcome(setups) != Fails {
		e.Outcome = Open
	}
	return e
}

// interval returns the 95 % interval of the largest change. The low end covers all changes at once, and so also the largest one.
// The high end needs no correction: the truly largest change exceeds all high ends no more often than a single
// change exceeds its own. Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 24 (1982), calls
// this an intersection–union test. With several setups, both ends cover all setups at once.
func (d decision) interval(setups int) (low, high float64) {
	return d.change - d.halfWidth*widening(d.freedom, d.largestOf*setups), d.change + d.halfWidth*widening(d.freedom, setups)
}

func (d decision) outcome(setups int) Outcome {
	low, high := d.interval(setups)
	switch {
	case d.below && high < d.limit, !d.below && low > d.limit:
		return Holds
	case d.below && low > d.limit, !d.below && high < d.limit:
		return Fails
	}
	return Open
}

// widening returns the factor from the half width of one 95 % interval to the half width of intervals that hold in several
// comparisons at once. It is Bonferroni's correction, which divides the 5 % equally among the comparisons: Dunn, "Multiple Comparisons among Means", Journal of the
// American Statistical Association 56 (1961).
func widening(freedom float64, comparisons int) float64 {
	switch {
	case comparisons == 1:
		return 1
	case !(freedom >= 1):
		return math.NaN()
	}
	return stats.Student(freedom, 1-(1-confidence)/float64(comparisons)) / stats.Student(freedom, confidence)
}

func (e Effect) where(format string, args ...any) Effect {
	e.Where = fmt.Sprintf(format, args...)
	return e
}
