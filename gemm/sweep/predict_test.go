package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

func h200(t testing.TB) *cost.Calibration {
	t.Helper()
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var small = operand.Options{Tokens: 256, N: 256, K: 256}

// TestPredict: at the reference the original is the unit of energy and time. A lower limit saves energy and costs time, and
// weights that toggle less save energy at any limit.
func TestPredict(t *testing.T) {
	c := h200(t)
	var stages []string
	r, err := sweep.Predict(t.Context(), c, operand.MustParse("normal(0,0.02)"), operand.MustParse("zeros"), sweep.PredictOptions{
		Settings: []sweep.Setting{{Cap: 500}, {Clock: 1000}}, Operands: small,
		Progress: func(e sweep.Event) { stages = append(stages, e.Stage) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Predicted || !r.Valid || r.Reference != c.PowerLimit || r.Before != "normal(0,0.02)" || r.After != "zeros" || r.Workload != "prefill" || len(stages) == 0 {
		t.Errorf("%+v", r)
	}
	if len(r.Points) != 3 || !r.IsReference(r.Points[1].Setting) {
		t.Fatalf("%+v", r.Points)
	}
	low, reference, slow := r.Points[0], r.Points[1], r.Points[2]
	if o := reference.Original; o.RelativeEnergy != 1 || o.RelativeTime != 1 || o.EDS[1].K != 2 {
		t.Errorf("the reference: %+v", o)
	}
	if low.Cap != 500 || low.Original.Watts > 500.5 || low.Original.RelativeTime < 1 || low.Original.RelativeEnergy > 1 {
		t.Errorf("at 500 W: %+v", low.Original)
	}
	if slow.Clock != 1000 || math.Abs(*slow.Original.Clock-1000) > 1 {
		t.Errorf("at 1000 MHz: %+v", slow.Original)
	}
	for _, p := range r.Points {
		if p.Converted == nil || p.Converted.Joules >= p.Original.Joules || p.Converted.Interval == nil {
			t.Errorf("%v: %+v", p.Setting, p.Converted)
		}
	}
}

// TestPredictDecode: a single set of weights, from memory, at the usual limits.
func TestPredictDecode(t *testing.T) {
	o := small
	o.Tokens = operand.DecodeTokens
	r, err := sweep.Predict(t.Context(), h200(t), operand.MustParse("normal(0,0.02)"), operand.Source{}, sweep.PredictOptions{Decode: true, Operands: o})
	if err != nil || r.Workload != "decode" || r.After != "" || len(r.Points) != 8 || r.Points[0].Converted != nil {
		t.Errorf("%v %+v", err, r)
	}
}

// TestPredictRefuses settings that the calibration does not cover, and a calibration without a power limit.
func TestPredictRefuses(t *testing.T) {
	w := operand.MustParse("zeros")
	var settings *sweep.SettingsError
	_, err := sweep.Predict(t.Context(), h200(t), w, operand.Source{}, sweep.PredictOptions{Settings: []sweep.Setting{{Cap: 50}}, Operands: small})
	if !errors.As(err, &settings) {
		t.Error(err)
	}
	c := *h200(t)
	c.PowerLimit = 0
	if _, err := sweep.Predict(t.Context(), &c, w, operand.Source{}, sweep.PredictOptions{Operands: small}); !errors.Is(err, sweep.ErrNoLimit) {
		t.Error(err)
	}
}

func TestParseValues(t *testing.T) {
	for text, want := range map[string][]float64{
		"400": {400}, "400, 500": {400, 500}, "300..700/200": {300, 500, 700}, "300..650/200": {300, 500, 650}, "1..1/5,7": {1, 7},
		"": nil, "0": nil, "-5": nil, "1.5": nil, "300..700": nil, "700..300/50": nil, "1..9000/1": nil, "x": nil, "NaN": nil,
	} {
		if got, err := sweep.ParseValues(text); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// Predict needs no GPU.
func ExamplePredict() {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		panic(err)
	}
	before, after := operand.MustParse("normal(0,0.02)"), operand.MustParse("normal(0,0.02) | round(4)")
	r, err := sweep.Predict(context.Background(), c, before, after, sweep.PredictOptions{
		Settings: []sweep.Setting{{Cap: 500}},
		Operands: operand.Options{Tokens: 512, N: 512, K: 512},
	})
	if err != nil {
		panic(err)
	}
	for _, p := range r.Points {
		fmt.Printf("%v: converted weights save energy: %v\n", p.Setting, p.Converted.RelativeEnergy < p.Original.RelativeEnergy)
	}
	// Output:
	// 500 W: converted weights save energy: true
	// 700 W: converted weights save energy: true
}
