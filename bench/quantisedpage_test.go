package bench

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// quantisedRecord is the record of a series: comparisons that each have a few readings of every pattern.
type quantisedRecord struct {
	title, baseline string
	series          string // of quantisedSeriesList
	files           []string
	predicted       map[string]float64 // by the calibration of the H200
	fitted          []string           // patterns from which the calibration's shares come
}

// quantisedRecords are the series that docs/quantised-energy.md shows. Predictions are those of [cost.Calibration] for the layer's
// patterns.
var quantisedRecords = []quantisedRecord{
	{"INT4, 4096 tokens, lowtoggle's kernel", "least error", "int4-prefill", []string{"int4-prefill-1", "int4-prefill-2"}, map[string]float64{
		"two mantissa bits": 0.983, "one mantissa bit": 0.979, "powers of two": 0.972, "even codes": 0.992, "even codes, powers of two": 0.967, "all codes zero": 0.825,
	}, []string{"powers of two", "all codes zero"}},
	{"INT4, 4096 tokens, lowtoggle's kernel with the weights as the B operand", "least error", "int4-streaming-prefill", []string{"int4-streaming-prefill"}, map[string]float64{
		"two mantissa bits": 0.970, "one mantissa bit": 0.960, "powers of two": 0.943, "all codes zero": 0.725,
	}, []string{"powers of two"}},
	{"INT4, 16 tokens, an earlier kernel, below the power cap", "least error", "int4-decode", []string{"int4-decode"}, map[string]float64{
		"two mantissa bits": 0.982, "one mantissa bit": 0.978, "powers of two": 0.971, "even codes": 0.974, "even codes, powers of two": 0.946, "all codes zero": 0.745,
	}, []string{"powers of two", "all codes zero"}},
	{"INT4, 16 tokens, lowtoggle's kernel, at the power cap", "least error", "int4-decode", []string{"int4-decode-capped"}, map[string]float64{
		"two mantissa bits": 0.982, "one mantissa bit": 0.978, "powers of two": 0.971, "even codes, powers of two": 0.946, "all codes zero": 0.745,
	}, nil},
	{"FP8, one scale, 16 tokens", "largest value at 448", "fp8-tensor-decode", []string{"fp8-tensor-decode"}, map[string]float64{
		"standard deviation at 2^-6": 0.936, "standard deviation at 2^-7": 0.905, "all codes zero": 0.765,
	}, nil},
	{"FP8, a scale for each output, 16 tokens", "largest value at 448", "passes-channel-decode", []string{"passes-channel-decode"}, map[string]float64{
		"scales=3": 0.947, "scales=2": 0.921, "scales=5,round=1": 0.955, "trellis=0.3": 0.947, "all codes zero": 0.781,
	}, []string{"all codes zero"}},
	{"FP8, a scale for each output, 4096 tokens", "largest value at 448", "passes-channel-prefill", []string{"passes-channel-prefill"}, map[string]float64{
		"scales=3": 0.973, "scales=2": 0.959, "trellis=0.3": 0.971,
	}, nil},
	{"FP8, blocks of 128×128, 16 tokens", "largest value at 448", "passes-block-decode", []string{"passes-block-decode"}, map[string]float64{
		"scales=3": 0.941, "scales=2": 0.913, "scales=5,round=1": 0.950, "trellis=0.3": 0.946, "all codes zero": 0.659,
	}, []string{"scales=3", "all codes zero"}},
	{"FP8, blocks of 128×128, 16 tokens, a card that reaches the power cap", "largest value at 448", "passes-block-decode", []string{"passes-block-decode-capped"}, map[string]float64{
		"scales=3": 0.941, "scales=2": 0.913,
	}, nil},
	{"FP8, blocks of 128×128, 4096 tokens", "largest value at 448", "passes-block-prefill", []string{"passes-block-prefill"}, map[string]float64{
		"scales=3": 0.970, "scales=2": 0.955, "trellis=0.3": 0.971,
	}, nil},
	{"FP8, a scale for each output, 4096 tokens, older run", "largest value at 448", "fp8-channel-prefill", []string{"fp8-channel-prefill"}, map[string]float64{
		"standard deviation at 2^-6": 0.975, "standard deviation at 2^-7": 0.962, "multiples of a quarter of the standard deviation": 0.964,
		"multiples of half the standard deviation": 0.948, "one mantissa bit": 0.974, "all codes zero": 0.746,
	}, []string{"all codes zero"}},
	{"FP8, blocks of 128×128, 4096 tokens, older run", "largest value at 448", "fp8-block-prefill", []string{"fp8-block-prefill"}, map[string]float64{
		"standard deviation at 2^-6": 0.974, "standard deviation at 2^-7": 0.960, "all codes zero": 0.737,
	}, []string{"all codes zero"}},
}

// cards returns the ids of the cards that the record is from.
func (r quantisedRecord) cards(t *testing.T) (ids []string) {
	t.Helper()
	for _, file := range r.files {
		for _, c := range cardsIn(t, filepath.Join(recorded, "quantised", file+".json")) {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// quantisedApart names the pattern of a series whose error is left out of the mean and given separately.
var quantisedApart = map[string]string{"int4-streaming-prefill": "all codes zero"}

// quantisedPatternsShown are the rows of a table, in order.
var quantisedPatternsShown = []string{
	"two mantissa bits", "one mantissa bit", "powers of two", "even codes", "even codes, powers of two",
	"standard deviation at 2^-6", "standard deviation at 2^-7", "multiples of a quarter of the standard deviation",
	"multiples of half the standard deviation", "one mantissa bit", "scales=3", "scales=2", "scales=5,round=1", "trellis=0.3", "all codes zero",
}

// quantisedReadings are a pattern's energies, relative to the mean of the baseline and its copy, and the SNR in its name.
type quantisedReadings struct {
	values   []float64
	snr      string
	energy   float64    // the mean
	interval [2]float64 // 95 % interval of the mean; of records with few blocks, the readings' range
	means    bool       // interval is of the mean
}

// blocksOfInterval is the smallest number of blocks for which the page gives a record's 95 % intervals.
const blocksOfInterval = 3

// readQuantised reads the readings of all patterns of a series.
func readQuantised(t *testing.T, r quantisedRecord) map[string]*quantisedReadings {
	t.Helper()
	all := map[string]*quantisedReadings{}
	split := func(load string) (name, snr string) {
		i := strings.LastIndex(load, ", ")
		return load[:i], strings.TrimSuffix(load[i+2:], " (copy)")
	}
	var run measure.Result
	for _, file := range r.files {
		run = measure.Result{}
		read(t, filepath.Join(recorded, "quantised", file+".json"), &run)
		base, n := 0.0, 0.0
		for _, b := range run.Blocks {
			for _, w := range b.Windows {
				if strings.HasPrefix(w.Load, r.baseline+",") {
					base, n = base+w.PerExecution, n+1
				}
			}
		}
		for _, b := range run.Blocks {
			for _, w := range b.Windows {
				name, snr := split(w.Load)
				if all[name] == nil {
					all[name] = &quantisedReadings{snr: snr}
				}
				all[name].values = append(all[name].values, w.PerExecution/(base/n))
			}
		}
	}
	for _, q := range all {
		q.interval = [2]float64{slices.Min(q.values), slices.Max(q.values)}
		for _, v := range q.values {
			q.energy += v / float64(len(q.values))
		}
	}
	if len(r.files) == 1 && len(run.Blocks) >= blocksOfInterval {
		for _, v := range append(run.Variants, run.Null) {
			name, _ := split(v.Name)
			all[name].energy, all[name].interval, all[name].means = v.RelativeEnergy, [2]float64(v.Interval), true
		}
	}
	return all
}

// spread writes the interval or the range of the readings.
func (q *quantisedReadings) spread() string {
	s := fmt.Sprintf("%.3f … %.3f", q.interval[0], q.interval[1])
	if q.means {
		s = "95 %: " + s
	}
	return s
}

func quantisedTable(t *testing.T) string {
	var b strings.Builder
	for _, r := range quantisedRecords {
		all := readQuantised(t, r)
		base, of := all[r.baseline], "The readings of these weights are"
		if base.means {
			of = "A copy of these weights was measured as well: the 95 % interval of its energy is"
		}
		fmt.Fprintf(&b, "\n**%s.** This table is from %s. Energy is relative to the weights “%s” with SNR %s. %s %.3f … %.3f.\n\n", r.title, strings.Join(r.cards(t), " and "), r.baseline, base.snr, of, base.interval[0], base.interval[1])
		b.WriteString("| weights | SNR | energy | readings | predicted |\n|---|---|---|---|---|\n")
		seen := map[string]bool{}
		off, count, apart := 0.0, 0.0, ""
		for _, name := range quantisedPatternsShown {
			got := all[name]
			if got == nil || seen[name] {
				continue
			}
			seen[name] = true
			snr, mark := got.snr, ""
			if name == "all codes zero" {
				snr = "–"
			}
			if slices.Contains(r.fitted, name) {
				mark = " †"
			}
			if wrong := math.Abs(got.energy - r.predicted[name]); name == quantisedApart[r.series] {
				apart = fmt.Sprintf(" without “%s”, whose prediction is off by %.1f points", name, 100*wrong)
			} else if mark == "" {
				off, count = off+wrong, count+1
			}
			fmt.Fprintf(&b, "| %s | %s | %.3f | %d, %s | %.3f%s |\n", name, snr, got.energy, len(got.values), got.spread(), r.predicted[name], mark)
		}
		fmt.Fprintf(&b, "\nThe mean error of these predictions is %.1f percentage points%s.\n", 100*off/count, apart)
	}
	return b.String()
}

// TestQuantisedPredictions checks the predictions of the page, on fewer rows.
func TestQuantisedPredictions(t *testing.T) {
	if testing.Short() {
		t.Skip("draws and quantises some hundred rows for every pattern")
	}
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string][]quantised{}
	for _, r := range quantisedRecords {
		i := slices.IndexFunc(quantisedSeriesList(), func(s quantisedSeries) bool { return s.name == r.series })
		s := quantisedSeriesList()[i]
		kind := s.name[:strings.LastIndex(s.name, "-")]
		rows := 128
		if s.typ == arith.FP8 {
			rows = distinctRows // several blocks; and rows of a trellis depend on those before
		}
		if made[kind] == nil {
			made[kind] = s.make(t, rows)
		}
		p := cost.Product{Type: s.typ, M: s.tokens, N: quantisedRows, K: quantisedCols, Role: s.role, Cold: s.tokens == cost.DecodeTokens}
		tokens := s.tokens
		s.tokens = min(tokens, rows)
		x := s.activations(t)
		base, scaled := 0.0, []scaledPoint(nil)
		for _, q := range made[kind] {
			p.Scaling = scalingOf(q.w)
			got, err := predictQuantised(t.Context(), c, p, x, q.w)
			if err != nil {
				t.Fatal(err)
			}
			if q.name == r.baseline {
				base = got
			}
			if want, ok := r.predicted[q.name]; ok && math.Abs(got/base-want) > 0.004 {
				t.Errorf("%s, %s: predicted %.4f, the page says %.3f", r.title, q.name, got/base, want)
			}
			if p.Scaling == "" || s.typ != arith.FP8 || q.name != r.baseline && !slices.Contains(r.fitted, q.name) {
				continue
			}
			one := p
			one.Scaling = ""
			joules, err := predictQuantised(t.Context(), c, one, x, q.w)
			if err != nil {
				t.Fatal(err)
			}
			point := scaledPoint{joules: got, one: joules, zero: q.name == "all codes zero", measured: readQuantised(t, r)[q.name].energy}
			if q.name == r.baseline {
				point.measured = 1
				scaled = slices.Insert(scaled, 0, point)
			} else {
				scaled = append(scaled, point)
			}
		}
		if len(scaled) > 1 {
			checkScaled(t, r.title, c.Facts.Kernels.Scaled[p.Scaling], p.Cold, scaled)
		}
	}
}

// scaledPoint is a pattern from which a kernel's shares come: its joules as predicted with the shares and with those of a kernel
// with one scale, and its measured energy relative to the baseline's.
type scaledPoint struct {
	joules, one, measured float64
	zero                  bool
}

// checkScaled finds the shares of a kernel with several scales from the points of a record that the calibration's shares come from,
// and compares them. The first point is the baseline. If a kernel with one scale takes A·(1 − u), this one takes A·(1 − share·u),
// and less by sums·A for weights that are all zero.
func checkScaled(t *testing.T, title string, facts cost.Scaled, cold bool, list []scaledPoint) {
	t.Helper()
	share, sums := facts.Operands, 0.0
	if cold {
		share, sums = facts.FewOperands, facts.Sums
	}
	all := (list[0].joules - share*list[0].one) / (1 - share) // A
	u := func(p scaledPoint) float64 { return 1 - p.one/all }
	first := list[1]
	if i := slices.IndexFunc(list[1:], func(p scaledPoint) bool { return !p.zero }); i >= 0 {
		first = list[1+i]
	}
	found, zeros := (1-first.measured)/(u(first)-first.measured*u(list[0])), 0.0
	for _, p := range list[1:] {
		if p.zero && !first.zero {
			zeros = 1 - found*u(p) - p.measured*(1-found*u(list[0]))
		}
	}
	t.Logf("%s: %.3f and sums %.3f, in the calibration %.2f and %.2f", title, found, zeros, share, sums)
	if !(math.Abs(found-share) < 0.0051) || !(math.Abs(zeros-sums) < 0.0051) {
		t.Errorf("%s: the record says %.3f and sums %.3f, the calibration %.3f and %.3f", title, found, zeros, share, sums)
	}
}

// scalingOf returns which part of the weights shares a scale; see [cost.Product].Scaling.
func scalingOf(w gemm.Matrix) string {
	switch {
	case w.Scales == nil || w.Scales.Rows == w.Rows:
		return ""
	case w.Scales.Cols < w.Cols:
		return "block"
	}
	return "channel"
}

// predictQuantised predicts the energy of a product with a quantised layer: in joules, or relative to random operands if joules
// are not known.
func predictQuantised(ctx context.Context, c *cost.Calibration, p cost.Product, x, w gemm.Matrix) (float64, error) {
	if w.Codes == nil {
		r, err := c.Predict(ctx, p, repeatedRows(x.Data, x.Cols*x.DType.Bits()/8, x.Cols), repeatedRows(w.Data, w.Cols, w.Cols))
		if err != nil {
			return 0, err
		}
		return *r.Joules, nil
	}
	packed := make([]byte, len(w.Codes.Codes)/2)
	for i := range packed {
		packed[i] = w.Codes.Codes[2*i] | w.Codes.Codes[2*i+1]<<4
	}
	r, err := c.PredictDequantised(ctx, p, repeatedRows(x.Data, 2*x.Cols, x.Cols), repeatedRows(w.Data, 2*w.Cols, w.Cols), repeatedRows(packed, w.Cols/2, w.Cols/2))
	return r.Relative, err
}

// repeatedRows returns an operand of the given number of rows, which repeat the rows in data.
func repeatedRows(data []byte, rowBytes, cols int) cost.Operand {
	size, rows := rowBytes/cols, len(data)/rowBytes
	return func(_ context.Context, row, n, col, cols int) ([]byte, error) {
		var out []byte
		for r := row; r < row+n; r++ {
			from := r%rows*rowBytes + col*size
			out = append(out, data[from:from+cols*size]...)
		}
		return out, nil
	}
}

// TestQuantisedPage checks that docs/quantised-energy.md has the tables of the recorded measurements.
func TestQuantisedPage(t *testing.T) {
	goldenfile.SameBetween(t, "../docs/quantised-energy.md", "<!-- tables: go test ./bench -run QuantisedPage -update -->\n", "<!-- end of tables -->\n", quantisedTable(t))
}
