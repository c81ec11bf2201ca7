package probe

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Calibrate fits the cost model to series measured on one card, or on cards of one kind. Facts that neither the
// series nor the devices give come from prior, which [cost.Calibration.Fit] uses too; nil is the built-in
// calibration nearest to the card. progress is called with the number of points whose operands were analysed, by one
// goroutine at a time; it may be nil. Calibrate returns an [experiment.ErrNull] for a series whose null points
// differ from the baseline, and an error for series of simulated cards or of several kinds of cards.
func Calibrate(ctx context.Context, all []*experiment.Series, prior *cost.Calibration, progress func(done, total int)) (*cost.Calibration, error) {
	if prior == nil {
		var err error
		if prior, err = builtInFor(all); err != nil {
			return nil, err
		}
	}
	c := &cost.Calibration{Facts: prior.Facts}
	swapped := swappedTypes(all)
	total, done := 0, 0
	for _, s := range all {
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("%v: %w", s.Setup, err)
		}
		total++
		for _, r := range s.Results() {
			if r.Experiment != experiment.Null {
				total++
			}
		}
	}
	for _, s := range all {
		for _, session := range s.Sessions {
			if session.Simulated {
				return nil, fmt.Errorf("%v: was measured on a simulated card: measure it on a GPU", s.Setup)
			}
			if c.Card != "" && c.Card != session.Card.Name {
				return nil, fmt.Errorf("%v: was measured on %s, but other series on %s: calibrate each kind of card separately", s.Setup, session.Card.Name, c.Card)
			}
			c.Card, c.Driver = session.Card.Name, session.Card.Driver
			c.Date = max(c.Date, strings.SplitN(session.Date, "T", 2)[0])
			if session.Card.PowerLimit != nil {
				c.PowerLimit = *session.Card.PowerLimit
			}
			noteSettings(&c.Facts.Settings, session.Card)
		}
		series, err := observe(ctx, c, s, swapped[s.Setup.Type], func() {
			if done++; progress != nil {
				progress(done, total)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s.Setup, err)
		}
		c.Series = append(c.Series, series)
	}
	return c, c.Fit(func(t arith.Type) bool { return swapped[t] }, prior)
}

// builtInFor returns the built-in calibration for the series' card.
func builtInFor(all []*experiment.Series) (*cost.Calibration, error) {
	for _, s := range all {
		for _, session := range s.Sessions {
			return cost.CalibrationFor(session.Card.Name)
		}
	}
	return cost.FindCalibration(cost.UsualGPU)
}

// noteSettings copies the limits of settings that a device reports.
func noteSettings(s *cost.Settings, card power.Info) {
	for _, v := range []struct {
		to   *float64
		told *float64
	}{{&s.LowestClock, card.MinSMClock}, {&s.HighestClock, card.MaxSMClock}, {&s.LowestCap, card.PowerLimitMin},
		{&s.DefaultCap, cmp.Or(card.PowerLimitPreset, card.PowerLimitMax)}} {
		if v.told != nil && *v.told > 0 {
			*v.to = *v.told
		}
	}
}

// swappedTypes returns the types in which cuBLASLt streams the A operand (named stationary). In these types, weights with
// runs of equal rows save more energy as the A operand.
func swappedTypes(all []*experiment.Series) map[arith.Type]bool {
	energy := map[arith.Type]map[cost.Role]float64{}
	for _, s := range all {
		if s.Change != experiment.Weights || s.Cold {
			continue
		}
		for _, r := range s.Results() {
			if strings.HasSuffix(r.W.String(), runsOfRows) {
				if energy[s.Setup.Type] == nil {
					energy[s.Setup.Type] = map[cost.Role]float64{}
				}
				energy[s.Setup.Type][s.Role] = r.Relative // the last series counts
			}
		}
	}
	return swappedBy(energy)
}

// swappedBy returns the swapped types from the relative energies of weights with runs of equal rows in both roles.
func swappedBy(energy map[arith.Type]map[cost.Role]float64) map[arith.Type]bool {
	swapped := map[arith.Type]bool{}
	for t, e := range energy {
		swapped[t] = len(e) == 2 && e[cost.Stationary] < e[cost.Streaming]-significant
	}
	return swapped
}

// significant is a difference of relative energies well above the noise of a measurement.
const significant = 0.02

// runsOfRows is the last step of weights in which every four rows are equal.
const runsOfRows = "| repeat(rows=4)"

// observe converts a measured series to a series of the cost model, with the features of all operands.
func observe(ctx context.Context, c *cost.Calibration, s *experiment.Series, swapped bool, seen func()) (cost.Series, error) {
	out, points, err := ratios(s)
	if err != nil {
		return out, err
	}
	var told sync.Mutex // one goroutine at a time calls seen
	err = parallel.Run(ctx, len(points), 0, func(ctx context.Context, i int) error {
		f, err := features(ctx, c, s, points[i], swapped)
		if err != nil {
			return err
		}
		if i == 0 {
			out.Baseline.Features = f
		} else {
			out.Points[i-1].Features = f
		}
		told.Lock()
		defer told.Unlock()
		seen()
		return nil
	})
	return out, err
}

// ratios converts a measured series to a series of the cost model without features. It also returns the baseline, and then the points,
// as they were multiplied.
func ratios(s *experiment.Series) (out cost.Series, points []experiment.Measured, err error) {
	out = cost.Series{Product: productOf(s.Setup), Change: string(s.Change)}
	ran := map[string]experiment.Measured{}
	var n float64
	b := &out.Baseline
	for _, session := range s.Sessions {
		out.Date, out.Card = strings.SplitN(session.Date, "T", 2)[0], session.Card.ID()
		for _, m := range session.Points {
			ran[m.Name()] = m
		}
		for _, r := range session.Readings {
			if !r.Baseline || r.SMClock == nil {
				continue
			}
			n++
			b.Joules, b.Seconds = b.Joules+r.PerExecution, b.Seconds+r.Seconds
			b.Watts, b.Clock = b.Watts+r.Watts, b.Clock+*r.SMClock
		}
	}
	if n == 0 {
		return out, nil, fmt.Errorf("there is no reading of the baseline with a clock: measure the series again on a card that reports its clock")
	}
	for _, v := range []*float64{&b.Joules, &b.Seconds, &b.Watts, &b.Clock} {
		*v = digits(*v / n)
	}
	points = []experiment.Measured{ran[s.Baseline.Name()]}
	x, w := patterns(points[0])
	b.X, b.W = x.String(), w.String()
	for _, r := range s.Results() {
		if r.Experiment == experiment.Null {
			continue
		}
		if !(r.Clock > 0) {
			return out, nil, fmt.Errorf("%s: the card did not report its clock: measure the series again", r.Name())
		}
		m := ran[r.Name()]
		x, w := patterns(m)
		points = append(points, m)
		out.Points = append(out.Points, cost.Observation{X: x.String(), W: w.String(), Family: r.Experiment, Energy: digits(r.Relative),
			HalfWidth: digits(r.HalfWidth), Time: digits(r.RelativeTime), Clock: digits(r.Clock / b.Clock)})
	}
	return out, points, nil
}

// patterns returns the patterns of the multiplied operands.
func patterns(m experiment.Measured) (x, w pattern.Pattern) {
	if m.Scaled != nil {
		return m.Scaled.X, m.Scaled.W
	}
	return m.X, m.W
}

func productOf(s experiment.Setup) cost.Product {
	return cost.Product{Type: s.Type, M: s.M, N: s.N, K: s.K, Role: s.Role, Cold: s.Cold}
}

// features computes the features of a point's operands.
func features(ctx context.Context, c *cost.Calibration, s *experiment.Series, m experiment.Measured, swapped bool) (*cost.Features, error) {
	x, w, err := operands(ctx, s, m)
	if err != nil {
		return nil, err
	}
	return c.Observe(ctx, s.Type.Operand(), productOf(s.Setup), swapped, x, w)
}

// operands returns the operands of a measured point.
func operands(ctx context.Context, s *experiment.Series, m experiment.Measured) (x, w cost.Operand, err error) {
	d := s.Type.Operand()
	ofX, ofW := patterns(m)
	forX, forW := s.Seeds(s.Baseline, m.Point)
	if x, err = Operand(ctx, ofX, pattern.Spec{DType: d, Rows: s.M, Cols: s.K, Seed: forX}); err != nil {
		return nil, nil, err
	}
	w, err = Operand(ctx, ofW, pattern.Spec{DType: d, Rows: s.N, Cols: s.K, Seed: forW})
	return x, w, err
}

// Operand returns a pattern's matrix as an operand of the cost model. A local pattern is drawn block by block on
// demand; any other is drawn at once. Errors are those of [pattern.Pattern.Generate].
func Operand(ctx context.Context, p pattern.Pattern, s pattern.Spec) (cost.Operand, error) {
	if p.Local() {
		return func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
			return p.Block(ctx, s, pattern.Range{From: row, To: row + rows}, pattern.Range{From: col, To: col + cols})
		}, nil
	}
	all, err := p.Generate(ctx, s, 1)
	if err != nil {
		return nil, err
	}
	size := s.DType.Bits() / 8
	return func(_ context.Context, row, rows, col, cols int) ([]byte, error) {
		out := make([]byte, 0, rows*cols*size)
		for r := row; r < row+rows; r++ {
			at := (r*s.Cols + col) * size
			out = append(out, all[at:at+cols*size]...)
		}
		return out, nil
	}, nil
}

// digits rounds to five significant digits, more than a reading has.
func digits(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return 0
	}
	return r
}
