package cost

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// someSeries returns invented series of two cards and three kinds. Energies follow a few features, with noise.
func someSeries(p *PowerLaw) (list []Series) {
	draw := rand.New(rand.NewPCG(3, 7))
	features := func(share float64) *Features {
		s := new(Features)
		for i := range s {
			s[i] = (2 + float64(i%5)) * share * (0.8 + 0.4*draw.Float64())
		}
		return s
	}
	families := []string{"3b", "constant", "5a", "6c", "4a", "sparse", "other"}
	for n, k := range []struct {
		typ    arith.Type
		cold   bool
		points int
		change string
	}{{arith.BF16, false, 50, "weights"}, {arith.BF16, true, 30, "weights"}, {arith.FP8, false, 12, "both"}, {arith.FP8, true, 9, "weights"}, {arith.BF16, false, 25, "both"}, {arith.INT8, true, 3, "weights"}, {arith.BF16, true, 20, "weights"}} {
		s := Series{Product: Product{Type: k.typ, M: 8192, N: 4096, K: 4096, Cold: k.cold, Role: Role(n % 2)}, Change: k.change, Card: fmt.Sprint("card ", n/4), Date: "2026-01-02",
			Baseline: Baseline{Joules: 1, Seconds: 0.002, Watts: 600, Clock: 1700 + 20*float64(n), Features: features(1)}}
		for i := range k.points {
			share := 0.1 + 0.9*float64(i)/float64(k.points)
			o := Observation{Family: families[i%len(families)], W: "normal(0,1)", Features: features(share)}
			activity := 0.2 + 0.5*o.Features[groupSum]/s.Baseline.Features[groupSum] + 0.3*o.Features[weightOnes]/s.Baseline.Features[weightOnes] + 0.02*draw.NormFloat64()
			if i%9 == 8 {
				o.W, o.Features[weightOnes] = "zeros", 0
			}
			if i%11 == 7 {
				o.W = "normal(0,1) | sparse(0.5)"
			}
			o.Clock = 1.15 - 0.15*activity
			o.Time = 1.0
			if !k.cold {
				o.Time = 1 / o.Clock
			}
			static := p.Static.Usual
			o.Energy = (activity*(600-static)*math.Pow(o.Clock, p.ClockExponent.Usual-1) + static*o.Time) / 600
			s.Points = append(s.Points, o)
		}
		list = append(list, s)
	}
	return list
}

// TestRecordedFits: fits to invented series have the recorded coefficients, errors and predictions of left-out points.
func TestRecordedFits(t *testing.T) {
	built, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	show := func(what string, list []LeftOut) {
		sum := 0.0
		for i, l := range list {
			if sum += l.Predicted + 10*l.HalfWidth; i%8 == 0 {
				fmt.Fprintf(&b, "%.5g ± %.5g of %s, ", l.Predicted, l.HalfWidth, l.Point.class())
			}
		}
		fmt.Fprintf(&b, "%s: %d, %.5g\n", what, len(list), sum)
	}
	for i, keep := range []func(s *Series) bool{nil, func(s *Series) bool { return s.Card == "card 0" }, func(s *Series) bool { return s.Type == arith.FP8 }, func(s *Series) bool { return s.Type == arith.INT8 }, func(*Series) bool { return false }} {
		for _, prior := range []*Calibration{nil, built} {
			if prior != nil && i%2 == 0 {
				continue
			}
			c := &Calibration{Card: "Test", Facts: built.Facts}
			for _, s := range someSeries(&built.Facts.Power) {
				if keep == nil || keep(&s) {
					c.Series = append(c.Series, s)
				}
			}
			err := c.Fit(func(typ arith.Type) bool { return typ == arith.FP8 }, prior)
			fmt.Fprintf(&b, "# %d, prior %v: %v, lags %.5g\n", i, prior != nil, err, c.Facts.LagShares)
			for _, m := range c.Models {
				fmt.Fprintf(&b, "%s cold %v swapped %v: ", m.Type, m.Cold, m.Swapped)
				for _, name := range slices.Sorted(maps.Keys(m.Coefficients)) {
					fmt.Fprintf(&b, "%s %.4g, ", name, m.Coefficients[name])
				}
				fmt.Fprintf(&b, "%+v, doubts %d\n", m.Quality, len(c.Doubts()))
				show("out", c.LeaveOut(m.Type, m.Cold, prior))
				if i > 0 {
					continue
				}
				show("by card", c.LeaveOutCard(m.Type, m.Cold, prior))
				show("shared", c.LeaveOutShared(m.Cold, m.Type, arith.FP8))
				for _, feature := range []string{c.Names[groupSum], c.Names[weightOnes], c.Names[quadSum]} {
					list, without := c.LeaveOutChanged(feature, m.Type, m.Cold)
					show(fmt.Sprint(feature, " without ", without), list)
				}
			}
			fmt.Fprintf(&b, "types %v\n", c.Types())
		}
	}
	goldenfile.Same(t, "testdata/fits.txt", []byte(b.String()))
}

// TestChangedCalibrations: a valid calibration with one change is valid, or refused with the recorded error.
func TestChangedCalibrations(t *testing.T) {
	built, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	put := func(what string, change func(c *Calibration)) {
		c := &Calibration{Card: "Test", Facts: built.Facts, Names: slices.Clone(built.Names), Models: slices.Clone(built.Models[:2]), PowerLimit: 700}
		for _, s := range built.Series {
			s.Points = slices.Clone(s.Points[:min(3, len(s.Points))])
			s.Response = slices.Clone(s.Response)
			c.Series = append(c.Series, s)
		}
		c.Models[0].Coefficients = map[string]float64{constantTerm: 0.4, c.Names[groupSum]: 0.6}
		change(c)
		fmt.Fprintf(&b, "%s: %v\n", what, c.validate())
	}
	for _, v := range []float64{-1, 0, 0.1, 0.1001, 0.3901, 0.3899, 0.4099, 0.4101, 1, 1.01, 9.99, 10, 10.1, 99.9, 100, math.NaN(), math.Inf(1), built.Facts.Power.Static.Usual, built.Facts.Power.Static.Usual + 0.1} {
		for name, field := range map[string]func(c *Calibration) *float64{
			"a limit": func(c *Calibration) *float64 { return &c.PowerLimit }, "b growth": func(c *Calibration) *float64 { return &c.Models[1].Quality.Growth },
			"c floor": func(c *Calibration) *float64 { return &c.Models[1].Quality.Floor }, "d joules": func(c *Calibration) *float64 { return &c.Series[1].Baseline.Joules },
			"e seconds": func(c *Calibration) *float64 { return &c.Series[1].Baseline.Seconds }, "f watts": func(c *Calibration) *float64 { return &c.Series[1].Baseline.Watts },
			"g clock": func(c *Calibration) *float64 { return &c.Series[1].Baseline.Clock }, "h response": func(c *Calibration) *float64 { return &c.Series[1].Response[3] },
			"i energy": func(c *Calibration) *float64 { return &c.Series[1].Points[1].Energy }, "j time": func(c *Calibration) *float64 { return &c.Series[1].Points[1].Time },
			"k relative clock": func(c *Calibration) *float64 { return &c.Series[1].Points[1].Clock },
		} {
			put(fmt.Sprintf("%s of %v", name, v), func(c *Calibration) { *field(c) = v })
		}
		put(fmt.Sprintf("l constant of %v", v), func(c *Calibration) { c.Models[0].Coefficients[constantTerm] = v })
	}
	for i, change := range []func(c *Calibration){
		func(c *Calibration) { c.Card = "" }, func(c *Calibration) { c.Models = nil }, func(c *Calibration) { c.Series = nil }, func(c *Calibration) { c.Models = c.Models[:1] },
		func(c *Calibration) { c.Names = c.Names[:weightNonzero] }, func(c *Calibration) { c.Names = c.Names[:weightNonzero-1] }, func(c *Calibration) { c.Names = append(c.Names, "x") },
		func(c *Calibration) { c.Names[3] = "x" }, func(c *Calibration) { c.Models[1].Type = arith.TF32 }, func(c *Calibration) { c.Models[1] = c.Models[0] },
		func(c *Calibration) { c.Models[1].Coefficients = map[string]float64{"x": 1} }, func(c *Calibration) { c.Models[1].Coefficients = map[string]float64{constantTerm: 2, c.Names[1]: -1} },
		func(c *Calibration) { c.Series[0].M = 0 }, func(c *Calibration) { c.Series[0].N, c.Series[0].K = 1, 1 }, func(c *Calibration) { c.Series[0].K = 0 },
		func(c *Calibration) { c.Series[0].Baseline.Features = nil }, func(c *Calibration) { c.Series[0].Change = "" }, func(c *Calibration) { c.Series[0].Change = "both" },
		func(c *Calibration) { c.Series[0].Points[0].Features = nil }, func(c *Calibration) { c.Series[0].Points[0].Family = "" }, func(c *Calibration) { c.Series[0].Points = nil },
		func(c *Calibration) { c.Series[0].Response = c.Series[0].Response[1:] }, func(c *Calibration) { c.Facts.Power.Static.Usual = -1 },
	} {
		put(fmt.Sprint("m", i), change)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	slices.Sort(lines)
	goldenfile.Same(t, "testdata/changes.txt", []byte(strings.Join(lines, "\n")+"\n"))
}

// TestRolesOfKernels: every library, format, type and number of tokens has the recorded role of the weights, or error.
func TestRolesOfKernels(t *testing.T) {
	var b strings.Builder
	formats := []quant.Format{{Codes: "fp8"}, {Codes: "fp8", Per: "block"}, {Codes: "int8"}, {Codes: "int4", Per: "group"}, {Codes: "mxfp4", Per: "group"}}
	for _, d := range []weights.DType{weights.BF16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		for _, f := range formats {
			for _, k := range []Kernel{"", CuBLASLt, CUTLASS, DeepGEMM, Machete, Marlin} {
				for _, tokens := range []int{1, 8, 9, 31, 32, 64, 65, never - 1, never} {
					r, name, err := k.Role(f, d, tokens)
					fmt.Fprintf(&b, "%s %s %s %q %d: %s %s, %v\n", d, f.Codes, f.Per, k, tokens, r, name, err)
					if err != nil {
						break
					}
				}
			}
		}
	}
	for _, l := range []Workload{{1, 0}, {0, 1}, {0.5, 0.5}, {}} {
		for n := range len(formats) + 1 {
			var layers []Multiplied
			for i := range formats[:n] {
				layers = append(layers, Multiplied{Operand: []weights.DType{weights.F8E4M3, weights.F8E4M3, weights.I8, weights.BF16, weights.BF16}[i], Format: &formats[i]}, Multiplied{Operand: weights.BF16})
			}
			for _, role := range []Role{Stationary, Streaming} {
				fmt.Fprintf(&b, "%v %s: %q\n", l, role, AssumedKernels(layers, role, l))
			}
		}
	}
	goldenfile.Same(t, "testdata/roles.txt", []byte(b.String()))
}
