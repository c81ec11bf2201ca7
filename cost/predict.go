package cost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Prediction is the prediction of a product's energy. Unknown values are nil.
type Prediction struct {
	// Relative is the energy relative to that of random normal operands of the same scale. With [Product].Scale, the
	// random weights have that scale.
	Relative     float64    `json:"relative_energy"`
	Interval     [2]float64 `json:"interval"` // 95 %
	RelativeTime float64    `json:"relative_time"`
	// BelowCap is nil with weights from memory, which do not reach the power limit. It is also nil if the card's
	// clock at the limit, or below it, is unknown.
	BelowCap *BelowCap `json:"below_cap,omitempty"`
	Joules   *float64  `json:"joules,omitempty"` // of one product
	Watts    *float64  `json:"watts,omitempty"`
	Seconds  *float64  `json:"seconds,omitempty"` // of one product
	Clock    *float64  `json:"clock_mhz,omitempty"`
	// SamplingError is the standard deviation of Relative from sampling the operands. Interval includes it.
	SamplingError float64 `json:"sampling_error"`
	// Scale is the root mean square of the random weights in the baseline.
	Scale       float64  `json:"-"`
	Calibration string   `json:"calibration"`
	Warnings    []string `json:"warnings,omitempty"`
}

var (
	errNoOperand     = errors.New("an operand of the product is nil: give a function that returns its blocks")
	errNoCalibration = errors.New("there is no calibration to predict with: find one with FindCalibration, or read one with ReadCalibration")
)

// Predict predicts the energy and time of a product of operands x[M,K] and w[N,K] in the type's format, from samples
// of both. With more tokens than the card's MemoryBoundTokens, multipliers are the bottleneck even if the weights
// come from memory. If a type was calibrated only for weights on chip, and the weights come from memory, BF16's model
// is used, as in [Calibration.Energy]. The error for a type that is not calibrated lists the calibrated types.
func (c *Calibration) Predict(ctx context.Context, p Product, x, w Operand) (Prediction, error) {
	if ctx == nil {
		return Prediction{}, parallel.ErrNoContext
	}
	if c == nil {
		return Prediction{}, errNoCalibration
	}
	if !p.Type.Valid() {
		return Prediction{}, c.unknown(p)
	}
	if x == nil || w == nil {
		return Prediction{}, errNoOperand
	}
	f, _ := p.Type.Operand().Format()
	if min(p.M, p.N, p.K) < 1 {
		return Prediction{}, fmt.Errorf("a product of %d×%d×%d: every dimension must be at least 1", p.M, p.N, p.K)
	}
	p.Cold = p.Cold && p.M <= c.Facts.Kernels.MemoryBoundTokens
	a, b := operandMatrix(f, p.M, p.K, x), operandMatrix(f, p.N, p.K, w)
	b.rms = p.Scale
	if m := c.model(p.Type, p.Cold); m != nil {
		return c.predict(ctx, m, p, sampleTiles, a, b)
	}
	m, typ, _ := c.modelOf(p.Type.Operand(), p.Cold)
	if m == nil || c.model(p.Type, false) == nil {
		return Prediction{}, c.unknown(p)
	}
	warning := fmt.Sprintf("%s was not calibrated with weights from memory: the prediction uses the model of %s, with a wider interval", p.Type, typ)
	p.Type = typ
	r, err := c.predict(ctx, m, p, sampleTiles, a, b)
	half := r.Interval[1] - r.Relative
	return Prediction{
		Relative: r.Relative, Interval: [2]float64{r.Relative - 2*half, r.Relative + 2*half}, RelativeTime: r.RelativeTime, SamplingError: r.SamplingError, Scale: r.Scale,
		Calibration: c.applied(typ, f.DType), Warnings: append(r.Warnings, warning),
	}, err
}

// applied returns the calibration label of a prediction with the model of another type.
func (c *Calibration) applied(typ arith.Type, to weights.DType) string {
	return fmt.Sprintf("%s, %s applied to %s", c.label(), typ, to)
}

// unknown returns the error for a type that was not calibrated with weights in this place.
func (c *Calibration) unknown(p Product) error {
	if err := c.Usable(); err != nil {
		return err
	}
	var known []string
	for _, m := range c.Models {
		known = append(known, fmt.Sprintf("%s with %s", m.Type, placeOf(m.Cold)))
	}
	return fmt.Errorf("the calibration of %s has no measurements of %s with %s, only of %s: choose another type, or fit a calibration to a table with the missing measurements (docs/own-card.md)",
		c.Card, p.Type, placeOf(p.Cold), strings.Join(known, ", "))
}

// placeOf names the place of weights, and the phase with this place.
func placeOf(cold bool) string {
	if cold {
		return "weights from memory (decode)"
	}
	return "weights on chip (prefill)"
}

func (c *Calibration) model(typ arith.Type, cold bool) *Model {
	for i := range c.Models {
		if m := &c.Models[i]; m.Type == typ && m.Cold == cold {
			return m
		}
	}
	return nil
}

func (c *Calibration) predict(ctx context.Context, m *Model, p Product, tiles int, x, w matrix) (r Prediction, err error) {
	p.Role = c.Facts.Kernels.roleInside(p)
	s, err := c.Facts.take(ctx, p.Role, m.Swapped, tiles, w, x)
	if err != nil {
		return r, err
	}
	reference, scale, err := c.reference(ctx, m, p, tiles, &x, &w)
	if err != nil {
		return r, err
	}
	features, model := s.mean(), c.Facts.coefficients(m)
	series, far := c.nearest(p)
	base := series.Baseline.Features
	share := c.Facts.Kernels.shareOfProducts(p) / c.Facts.Kernels.shareOfProducts(series.Product)
	following, sums := c.Facts.Kernels.sharesOfScaling(p)
	following *= share
	type response func(*Series, float64) (energy, time, clock float64)
	answer := func(at response, s *Features) (energy, time, clock float64) { // relative to the series' baseline
		energy, time, clock = at(series, model.activity(s, base))
		zero := 1 - float64(relative(s[streamingNonzero], 1)*relative(s[stationaryNonzero], 1))
		return 1 - float64(following*(1-energy)) - float64(sums*zero), 1 - float64(following*(1-time)), clock
	}
	usual := c.Facts.Power.energyAt
	energy, time, clock := answer(usual, &features)
	random, randomTime, _ := answer(usual, &reference)
	r.Relative, r.RelativeTime, r.Calibration = energy/random, time/randomTime, c.label()
	r.Scale = scale
	r.SamplingError = s.deviation(func(s *Features) float64 {
		e, _, _ := answer(usual, s)
		return e / random
	})
	if !c.measured(p) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("for %s with %s, no %s weights were measured: the prediction uses measurements of %s weights, with a wider interval",
			p.Type, placeOf(p.Cold), p.Role, series.Role))
	}
	r.warn(&c.Facts.Power, series, far, model.activity(&features, base))
	half := float64(elementary.Hypot(m.Quality.HalfWidth(r.Relative), 1.96*r.SamplingError) * float64(1+len(r.Warnings)))
	r.Interval = [2]float64{r.Relative - half, r.Relative + half}
	work := p.work() / series.work() / share // the energy of results is added by share
	joules, seconds := series.Baseline.Joules*energy*work, series.Baseline.Seconds*time*work
	highest := func(clock float64) float64 { return min(series.Baseline.Clock*clock, c.Facts.Settings.HighestClock) } // a response has the noise of its readings
	watts := joules / seconds
	r.Joules, r.Seconds, r.Watts = &joules, &seconds, &watts
	if series.Baseline.ClockAssumed {
		return r, nil
	}
	r.Clock = new(highest(clock))
	if c.Facts.Power.Bursts != nil && !p.Cold {
		atLimit := series.Baseline.Clock
		if c.atCap(series) {
			atLimit = min(atLimit*c.clockOfShape(p, series), c.highestClock())
		}
		by := func(p *PowerLaw) response {
			return func(s *Series, activity float64) (energy, time, clock float64) {
				return c.burstAt(p, s, atLimit, activity)
			}
		}
		r.BelowCap = c.Facts.Power.belowCap(func(p *PowerLaw) (float64, float64) {
			energy, time, _ := answer(by(p), &features)
			random, randomTime, _ := answer(by(p), &reference)
			return energy / random, time / randomTime
		}, func(relative float64) float64 {
			return elementary.Hypot(m.Quality.HalfWidth(relative), 1.96*r.SamplingError) * float64(1+len(r.Warnings))
		})
		_, _, clock = answer(by(&c.Facts.Power), &features)
		r.BelowCap.Clock = min(atLimit*clock, c.Facts.Settings.HighestClock)
	}
	return r, nil
}

// deviation returns the standard error of the mean over the parts.
func (s *sample) deviation(of func(*Features) float64) float64 {
	var sum, squares float64
	for i := range s {
		v := of(&s[i])
		sum += v
		squares += float64(v * v)
	}
	mean := sum / sampleParts
	return math.Sqrt(max(0, float64(squares/sampleParts)-float64(mean*mean)) / (sampleParts - 1))
}

// warn adds a warning for each property outside the range of the measurements. Each warning widens the interval.
func (r *Prediction) warn(p *PowerLaw, s *Series, far bool, activity float64) {
	if far {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no product of about this shape was measured: the prediction uses measurements of %d×%d×%d, with a wider interval", s.M, s.N, s.K))
	}
	least, most := 1.0, 1.0
	for i := range s.Points {
		a := p.activity(s, &s.Points[i])
		least, most = min(least, a), max(most, a)
	}
	const margin = 0.05
	if activity < least-margin || activity > most+margin {
		r.Warnings = append(r.Warnings, "the weights toggle fewer or more bits than all measured patterns: the prediction is extrapolated, with a wider interval")
	}
}

// shareOfProducts returns the share of the energy without results, which do not depend on weights.
func (k *Kernels) shareOfProducts(p Product) float64 {
	if p.Cold {
		return 1
	}
	return float64(p.K) / (float64(p.K) + k.ResultProducts)
}

// sharesOfScaling returns operands, the factor of the operands' share of the energy relative to a kernel with one
// scale, and sums, the share that only all-zero weights save.
func (k *Kernels) sharesOfScaling(p Product) (operands, sums float64) {
	s, ok := k.Scaled[p.Scaling]
	switch {
	case !ok || p.Type != arith.FP8:
		return 1, 0
	case p.Cold:
		return s.FewOperands, s.Sums
	}
	return s.Operands, 0
}

// roleInside returns the weights' role in the multipliers. With far more tokens than outputs, the library streams the
// tokens, whichever operand they are.
func (k *Kernels) roleInside(p Product) Role {
	if library := p.Kernel == "" || p.Kernel == CuBLASLt; library && !p.Cold && p.M >= k.StreamedTokensRatio*p.N {
		return Stationary
	}
	return p.Role
}

// work returns the quantity that a product's time is proportional to: the number of operations, or of weights.
func (p Product) work() float64 {
	if p.Cold {
		return float64(p.N) * float64(p.K)
	}
	return float64(p.M) * float64(p.N) * float64(p.K)
}

// measured reports whether weights in the product's role and place were measured.
func (c *Calibration) measured(p Product) bool {
	return slices.ContainsFunc(c.Series, func(s Series) bool { return s.Type == p.Type && s.Cold == p.Cold && s.Role == p.Role })
}

// nearest returns the nearest series of the same type and workload. It compares the number of results, which
// determines how well a card is filled, and K; then the role; then the number of points. far is true if results or
// inputs differ by more than a factor of four.
func (c *Calibration) nearest(p Product) (best *Series, far bool) {
	off := func(a, b float64) float64 { return math.Abs(elementary.Log2(a / b)) }
	results := func(p Product) float64 {
		if p.Cold { // the weights are read once for all tokens
			return float64(p.N)
		}
		return float64(p.M) * float64(p.N)
	}
	distance := func(s *Series) float64 {
		d := off(results(p), results(s.Product)) + float64(off(float64(p.K), float64(s.K))/2) + float64(off(float64(p.M), float64(s.M))/8)
		return d + float64(0.01*truth(s.Role != p.Role)) - float64(1e-5*float64(len(s.Points)))
	}
	for i := range c.Series {
		s := &c.Series[i]
		if s.Type == p.Type && s.Cold == p.Cold && (best == nil || distance(s) < distance(best)) {
			best = s
		}
	}
	const octaves = 2.001
	return best, off(results(p), results(best.Product)) > octaves || off(float64(p.K), float64(best.K)) > octaves
}

// Tokens returns measured, the number of tokens of the measured product that a product of few tokens with weights from
// memory is predicted by, and most, the largest number of tokens that counts as few. If no such product was measured,
// measured is 0.
func (c *Calibration) Tokens(t arith.Type) (measured, most int) {
	if c == nil {
		return 0, 0
	}
	if m, typ, _ := c.modelOf(t.Operand(), true); m != nil {
		if s, _ := c.nearest(Product{Type: typ, M: DecodeTokens, N: 1, K: 1, Cold: true}); s != nil {
			measured = s.M
		}
	}
	return measured, c.Facts.Kernels.MemoryBoundTokens
}

// referenceKey identifies random operands with the same features.
type referenceKey struct {
	typ            arith.Type
	dtype          weights.DType
	role           Role
	k              int
	xScale, wScale int // quarters of an octave
	tiles          int
}

// reference returns the features of random operands of the same scale, and the scale of their weights.
func (c *Calibration) reference(ctx context.Context, m *Model, p Product, tiles int, x, w *matrix) (Features, float64, error) {
	xScale, err := x.scale(ctx)
	if err != nil {
		return Features{}, 0, err
	}
	wScale, err := w.scale(ctx)
	if err != nil {
		return Features{}, 0, err
	}
	rms := elementary.Exp2(float64(wScale) / 4)
	key := referenceKey{m.Type, w.f.DType, p.Role, p.K, xScale, wScale, tiles}
	if s, ok := c.references.Load(key); ok {
		return s.(Features), rms, nil
	}
	const rows = 4096
	for _, o := range []struct {
		name  string
		scale int
	}{{"w", wScale}, {"x", xScale}} {
		if rms := elementary.Exp2(float64(o.scale) / 4); rms > math.MaxFloat32 {
			return Features{}, 0, fmt.Errorf("operand %s has a root mean square of about %.3g, so no random operand of equal scale fits float32: divide %s by a power of two", o.name, rms, o.name)
		}
	}
	random := func(scale int, seed uint64) matrix {
		return operandMatrix(w.f, rows, p.K, randomOperand(w.f.DType, rows, p.K, elementary.Exp2(float64(scale)/4), seed))
	}
	s, err := c.Facts.take(ctx, p.Role, m.Swapped, tiles, random(wScale, 3), random(xScale, 2))
	if err != nil {
		return Features{}, 0, err
	}
	mean := s.mean()
	c.references.Store(key, mean)
	return mean, rms, nil
}

// randomOperand returns an operand of normal elements with standard deviation sigma, up to the largest float32.
func randomOperand(d weights.DType, rows, k int, sigma float64, seed uint64) Operand {
	p, err := pattern.Parse(fmt.Sprintf("normal(0,%g)", sigma))
	if err != nil {
		panic(err) // patterns accept every such sigma
	}
	s := pattern.Spec{DType: d, Rows: rows, Cols: k, Seed: seed}
	return func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		return p.Block(ctx, s, pattern.Range{From: row, To: row + rows}, pattern.Range{From: col, To: col + cols})
	}
}

// scale returns the scale of the random elements in the baseline, in quarters of an octave. It is rms or, if that is
// 0, the root mean square of a sample. If all elements are zero, it is the usual scale of the type's operands.
func (m *matrix) scale(ctx context.Context) (int, error) {
	rms := m.rms
	if rms == 0 {
		var err error
		if rms, err = m.sampleRMS(ctx); err != nil {
			return 0, err
		}
	}
	if rms == 0 {
		rms = RandomSigma(m.f.DType)
	}
	return int(math.Round(4 * elementary.Log2(rms))), nil
}

func (m *matrix) sampleRMS(ctx context.Context) (float64, error) {
	var places lattice
	var squares, n float64
	for range sampleChunks {
		u, v, _ := places.next()
		data, err := m.chunk(ctx, u, v)
		if err != nil {
			return 0, err
		}
		for i := range len(data) * 8 / m.f.Bits {
			if v := float64(m.f.Value(m.f.Elem(data, i))); v-v == 0 {
				squares += float64(v * v)
				n++
			}
		}
	}
	return math.Sqrt(squares / math.Max(1, n)), nil
}

// RandomSigma returns the standard deviation of random operands of type d, in the middle of the type's range. For
// types without a format, it returns 1.
func RandomSigma(d weights.DType) float64 {
	f, _ := d.Format()
	switch {
	case f.Bits == 8 && !f.IsFloat():
		return 32
	case f.Bits == 8:
		return 16
	}
	return 1
}

// Observe samples a product's features on the calibration's card. It uses only the card's facts. swapped reports
// whether the library streams the operand whose role is stationary.
func (c *Calibration) Observe(ctx context.Context, d weights.DType, p Product, swapped bool, x, w Operand) (*Features, error) {
	if c == nil {
		return nil, errNoCalibration
	}
	f, ok := d.Format()
	if !ok {
		return nil, fmt.Errorf("operands of %s have no features: give operands of %s", d, weights.FormatNames("or"))
	}
	if x == nil || w == nil {
		return nil, errNoOperand
	}
	s, err := c.Facts.take(ctx, p.Role, swapped, sampleTiles, operandMatrix(f, p.N, p.K, w), operandMatrix(f, p.M, p.K, x))
	if err != nil {
		return nil, err
	}
	mean := s.mean()
	return &mean, nil
}
