package sweep

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// PredictOptions are the options of [Predict].
type PredictOptions struct {
	// Settings are the settings to predict. Default: the [Usual] power limits up to the calibration's limit.
	Settings []Setting
	// K are the parameters k of the energy-delay sums. Default 1.5 and 2.
	K []float64
	// Decode predicts decode, in which weights are read from memory. Default: prefill.
	Decode bool
	// Operands describe the products. For decode, set Operands.Tokens to [operand.DecodeTokens].
	Operands operand.Options
	// Progress is called with each event. Default: not called.
	Progress func(Event)
}

// ErrNoLimit is the error for a calibration without the power limit of its measurements.
var ErrNoLimit = errors.New("the power limit of the calibration's measurements is unknown: add power_limit_watts, the card's limit in watts, to the calibration's file")

// Predict returns the predicted result of a sweep, without a card. It predicts the original weights, and the converted
// weights unless after is zero. All ratios are relative to the original at the calibration's power limit. Errors:
// [ErrNoLimit], a *[SettingsError], and those of [predict.Sources].
func Predict(ctx context.Context, c *cost.Calibration, before, after operand.Source, o PredictOptions) (*Result, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	o.K = Options{K: o.K}.withDefaults().K
	sources := []operand.Source{before}
	if after.Text != "" {
		sources = append(sources, after)
	}
	all, err := predictWeights(ctx, c, sources, o)
	if err != nil {
		return nil, err
	}
	settings, err := predictable(c, o.Settings)
	if err != nil {
		return nil, err
	}
	r := &Result{GPU: c.Card, Predicted: true, Valid: true, Workload: "prefill", Reference: c.PowerLimit, Intervals: IntervalsModel,
		Calibration: all[0].Calibration, Before: strings.TrimSuffix(before.Text, ":"), After: strings.TrimSuffix(after.Text, ":")}
	if o.Decode {
		r.Workload = "decode"
	}
	base, err := c.AtSetting(all[0].work, cost.Setting{})
	if err != nil {
		return nil, err
	}
	bits := bitsError(all)
	for _, s := range settings {
		p := Point{Setting: s, Predicted: true, Extrapolated: c.Extrapolates(cost.Setting(s))}
		for i, w := range all {
			at, err := c.AtSetting(w.work, cost.Setting(s))
			if err != nil {
				return nil, &SettingsError{err.Error()}
			}
			if i == 0 {
				p.Original = predictedFigures(at, base, 0, o.Decode)
			} else {
				p.Converted = new(predictedFigures(at, base, bits, o.Decode))
			}
		}
		r.Points = append(r.Points, p)
	}
	r.Finish(o.K)
	for _, w := range all {
		for _, text := range w.Warnings {
			r.warn("%s", text)
		}
	}
	return r, nil
}

// predictable returns the settings to predict, including the calibration's own.
func predictable(c *cost.Calibration, asked []Setting) ([]Setting, error) {
	lowest, highest := c.Reach()
	if highest.Cap == 0 {
		return nil, ErrNoLimit
	}
	can := Range{LowestCap: lowest.Cap, HighestCap: highest.Cap, LowestClock: lowest.Clock, HighestClock: highest.Clock}
	if err := can.Check("predictions for "+c.Card+" go", asked); err != nil {
		return nil, err
	}
	settings, reference := slices.Clone(asked), Setting{Cap: highest.Cap}
	if len(settings) == 0 {
		settings = Usual(lowest.Cap, highest.Cap)
	}
	if !slices.Contains(settings, reference) {
		settings = append(settings, reference)
	}
	return settings, nil
}

// predictedWeights is the prediction of one set of weights at the card's default settings.
type predictedWeights struct {
	cost.Prediction // prediction of all layers
	work            []cost.Work
}

func predictWeights(ctx context.Context, c *cost.Calibration, sources []operand.Source, o PredictOptions) (all []predictedWeights, err error) {
	r, err := predict.Sources(ctx, c, sources, predict.Options{Operands: o.Operands, Cold: o.Decode, Compare: true, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	for _, p := range r.Predictions {
		work, err := p.Work()
		if err != nil {
			return nil, err
		}
		all = append(all, predictedWeights{p.Prediction, work})
	}
	return all, nil
}

// bitsError returns the error of the predicted change through the weights' bits, relative to energy. An error of the
// model that is common to before and after has no effect.
func bitsError(all []predictedWeights) float64 {
	if len(all) < 2 {
		return 0
	}
	before, after := all[0], all[1]
	return min(math.Abs(after.Relative/before.Relative-1), (after.Interval[1]-after.Interval[0])/2)
}

// predictedFigures returns the figures at a setting. Their ratios to base have intervals. bits is the result of
// bitsError.
func predictedFigures(at, base cost.Outcome, bits float64, decode bool) Figures {
	ratio := func(in [2]float64, base, bits float64) []float64 {
		return []float64{in[0] / base * (1 - bits), in[1] / base * (1 + bits)}
	}
	f := Figures{Joules: at.Joules, Seconds: at.Seconds, Watts: at.Watts, Clock: &at.Clock, Interval: ratio(at.JoulesInterval, base.Joules, bits)}
	if decode { // decode is bound by bandwidth, so bits change power and not time
		bits = 0
	}
	f.TimeInterval = ratio(at.SecondsInterval, base.Seconds, bits)
	return f
}
