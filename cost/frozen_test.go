package cost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestPredictionsAreFrozen: the built-in calibration gives the frozen predictions. Predictions determine plans, and
// plans determine the bytes of converted models. A change of this file therefore changes those bytes, and needs its
// own commit with the reason. The file covers every role and kind of product, at the shapes where rules change.
func TestPredictionsAreFrozen(t *testing.T) {
	found, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/h200.json"
	if err := found.Write(file); err != nil {
		t.Fatal(err)
	}
	c, err := ReadCalibration(file) // nothing is cached
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	ctx := t.Context()
	known := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.6g", *v)
	}
	show := func(what string, r Prediction, err error) {
		if err != nil {
			fmt.Fprintf(&b, "%s: none\n", what)
			return
		}
		fmt.Fprintf(&b, "%s: %.6g of %.6g, time %.6g, %s J, %s s, %s W, %s MHz, sampling %.4g, scale %.4g, %s, %d warnings", what, r.Relative, r.Interval, r.RelativeTime,
			known(r.Joules), known(r.Seconds), known(r.Watts), known(r.Clock), r.SamplingError, r.Scale, r.Calibration, len(r.Warnings))
		if below := r.BelowCap; below != nil {
			fmt.Fprintf(&b, "; below the cap %.6g of %.6g, time %.6g of %.6g, %.6g MHz", below.Relative, below.Interval, below.RelativeTime, below.TimeInterval, below.Clock)
		}
		b.WriteString("\n")
	}
	few := c.Facts.Kernels.MemoryBoundTokens
	// Shapes: in prefill; in decode; at the largest memory-bound number of tokens and one more; with many tokens for
	// each output; far from the measured ones.
	shapes := []Product{{M: 512, N: 512, K: 1024}, {M: 16, N: 2048, K: 1024, Cold: true}, {M: few, N: 512, K: 512, Cold: true}, {M: few + 1, N: 512, K: 512, Cold: true},
		{M: 1024, N: 1024 / c.Facts.Kernels.StreamedTokensRatio, K: 512}, {M: 8, N: 24, K: 40}}
	var work []Work
	for _, typ := range []arith.Type{arith.FP32, arith.BF16, arith.FP8, arith.INT8} {
		d := typ.Operand()
		sigma := RandomSigma(d)
		for i, p := range shapes {
			for _, role := range []Role{Stationary, Streaming} {
				p.Type, p.Role = typ, role
				_, x := drawn(t, fmt.Sprintf("normal(0,%g)", sigma), d, p.M, p.K, 2)
				patterns := []string{fmt.Sprintf("normal(0,%g)", 0.7*sigma), fmt.Sprintf("normal(0,%g) | repeat(rows=4)", sigma), "zeros"}
				if i > 1 {
					patterns = patterns[1:2]
				}
				for _, text := range patterns {
					_, w := drawn(t, text, d, p.N, p.K, 3)
					if i == 0 {
						features, err := c.Observe(ctx, d, p, role == Streaming, x, w)
						if err != nil {
							t.Fatal(err)
						}
						fmt.Fprintf(&b, "features %.6g\n", *features)
					}
					r, err := c.Predict(ctx, p, x, w)
					what := fmt.Sprintf("%s %s %d×%d×%d cold %v, %s", typ, role, p.M, p.N, p.K, p.Cold, text)
					show(what, r, err)
					for _, scaling := range []string{"block", "group"} {
						if typ == arith.FP8 {
							p.Scaling = scaling
							r, err := c.Predict(ctx, p, x, w)
							show(what+" scaled by "+scaling, r, err)
							p.Scaling = ""
						}
					}
					if err != nil {
						continue
					}
					if held, err := c.Work(p, r, 1+i); err == nil {
						fmt.Fprintf(&b, "  work %.6g s %.6g W %.6g MHz, %.6g s of products\n", held.Seconds, held.Watts, held.Clock, held.compute)
						if text != "zeros" && typ == arith.BF16 {
							work = append(work, held)
						}
					}
					if typ == arith.BF16 {
						_, codes := drawn(t, "normal(0,16)", weights.F8E4M3, p.N, p.K/2, 4)
						r, err := c.PredictDequantised(ctx, p, x, w, codes)
						show(what+" from codes", r, err)
					}
				}
			}
		}
	}
	for _, s := range []Setting{{}, {Cap: 690}, {Cap: 500}, {Cap: 300}, {Cap: 200}, {Clock: 1800}, {Clock: 900}, {Clock: 345}, {Cap: 450, Clock: 1500}} {
		o, err := c.AtSetting(work, s)
		fmt.Fprintf(&b, "at %v: %.6g J, %.6g s, %.6g W, %.6g MHz, %.6g J, %.6g s, %v\n", s, o.Joules, o.Seconds, o.Watts, o.Clock, o.JoulesInterval, o.SecondsInterval, err)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for _, d := range []weights.DType{weights.F32, weights.F16, weights.BF16, weights.F8E4M3, weights.F8E5M2, weights.I8} {
		const rows, cols = 96, 320
		f, _ := d.Format()
		data := make([]byte, rows*cols*f.Bits/8)
		for i := range rows * cols {
			f.SetElem(data, i, f.FromValue(float32(RandomSigma(d)*rng.NormFloat64())))
		}
		for axis := range 2 {
			w := Weights{DType: d, OutAxis: axis, Rows: rows, Cols: cols, Bands: []Band{{Data: data}}}
			for _, role := range []Role{Stationary, Streaming} {
				for _, l := range []Workload{{Prefill: 1}, {Decode: 1}, {Prefill: 0.25, Decode: 0.75}} {
					e, err := c.Energy(ctx, w, role, l)
					fmt.Fprintf(&b, "%s outputs %d %s %v: %.6g of %.6g, %s, %v\n", d, axis, role, l, e.Relative, e.Interval, e.Calibration, err)
					for lagAxis := range 2 {
						lags, err := c.Lags(ctx, w, lagAxis, role, l)
						for _, lag := range lags {
							fmt.Fprintf(&b, "  lag of axis %d: %d %.5g %v\n", lagAxis, lag.Distance, lag.Weights, err)
						}
					}
				}
			}
		}
		ceiling, err := c.Ceiling(Multiplied{Operand: d}, 512, 256, Stationary, Workload{Prefill: 0.5, Decode: 0.5})
		fmt.Fprintf(&b, "%s all zero: %.6g %v\n", d, ceiling.Relative, err)
	}
	goldenfile.Same(t, "testdata/predictions.txt", b.Bytes())
}

// TestErrorsOfOperands: an error of either operand, at any block, is returned by the prediction.
func TestErrorsOfOperands(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	_, good := drawn(t, "normal(0,1)", weights.BF16, 64, 64, 1)
	for after := range 3 {
		left := after
		bad := func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
			if left--; left < 0 {
				return nil, broken
			}
			return good(ctx, row, rows, col, cols)
		}
		for _, o := range [][2]Operand{{good, bad}, {bad, good}} {
			left = after
			if _, err := c.Predict(t.Context(), Product{Type: arith.BF16, M: 64, N: 64, K: 64}, o[0], o[1]); !errors.Is(err, broken) {
				t.Errorf("after %d blocks: %v", after, err)
			}
		}
	}
	if _, err := c.Predict(t.Context(), Product{Type: arith.BF16, M: 64, N: 0, K: 64}, good, good); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Errorf("no outputs: %v", err)
	}
	if _, err := c.Predict(t.Context(), Product{Type: arith.BF16, M: 1, N: 1, K: 1}, good, good); err != nil {
		t.Errorf("the least product: %v", err)
	}
}
