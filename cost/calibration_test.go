package cost

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

// small is a calibration of one type with made-up points, fitted.
func small(t testing.TB) *Calibration {
	t.Helper()
	features := func(v float64) *Features {
		s := new(Features)
		for i := range s {
			s[i] = v
		}
		return s
	}
	s := Series{Product: Product{Type: arith.BF16, M: 512, N: 512, K: 512}, Change: "weights",
		Baseline: Baseline{X: "normal(0,1)", W: "normal(0,1)", Joules: 1, Seconds: 0.002, Watts: 500, Clock: 1980, Features: features(1)}}
	for i := range 15 {
		v := float64(i) / 15
		s.Points = append(s.Points, Observation{Family: string(rune('a' + i%3)), X: "normal(0,1)", W: "zeros", Energy: 0.5 + 0.5*v,
			Time: 1, Clock: 1, Features: features(v)})
	}
	c := &Calibration{Card: "Test", Date: "2026-11-21", Facts: factsOfH200(t), Series: []Series{s}}
	if err := c.Fit(func(arith.Type) bool { return false }, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func factsOfH200(t testing.TB) Facts {
	t.Helper()
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	return c.Facts
}

// TestFitFindsALine: a fit finds planted coefficients, and the calibration can be written and read.
func TestFitFindsALine(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	c := small(t)
	m := &c.Models[0]
	if m.Quality.Points != 15 || m.Quality.Mean > 0.005 || math.Abs(m.Coefficients[constantTerm]-(500*0.5-100.)/(500-100.)) > 0.02 {
		t.Errorf("%+v", m)
	}
	file := filepath.Join(t.TempDir(), "c.json")
	if err := c.Write(file); err != nil {
		t.Fatal(err)
	}
	again, err := ReadCalibration(file)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(c)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Error("reading gives another calibration than writing")
	}
}

func TestDamagedCalibrations(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	good, err := json.Marshal(small(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"version":     {`"calibration_version":2`, `"calibration_version":99`, "version 99, but this program reads version 2: run lowtoggle calibrate again"},
		"no version":  {`"calibration_version":2,`, ``, "no calibration_version"},
		"unknown":     {`"card":`, `"colour":"red","card":`, "damaged calibration"},
		"no card":     {`"card":"Test"`, `"card":""`, "the card, the models or the measurements are missing"},
		"features":    {`"quad_sum"`, `"other_sum"`, "features differ from"},
		"coefficient": {`"constant":`, `"constant":-`, "coefficient"},
		"baseline":    {`"watts":500`, `"watts":5`, "baseline"},
		"energy":      {`"relative_energy":0.5,`, `"relative_energy":0,`, "a ratio is missing or out of range"},
		"role":        {`"role":"stationary"`, `"role":"resting"`, "unknown role"},
		"response":    {`"clock":[`, `"clock":[1,`, "response"},
		"cut":         {`}]}]}`, ``, "not a calibration"},
	} {
		text := strings.Replace(string(good), c.from, c.to, 1)
		if text == string(good) {
			t.Errorf("%s: the replacement has no effect", name)
		}
		file := filepath.Join(t.TempDir(), "c.json")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCalibration(file); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ReadCalibration(filepath.Join(t.TempDir(), "none.json")); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// FuzzCalibration: a calibration is an error, or can be written and read again. The fuzz target makes no predictions,
// because one takes seconds.
func FuzzCalibration(f *testing.F) {
	good, err := json.Marshal(small(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"calibration_version":1,"series":[null],"models":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeCalibration(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeCalibration(again); err != nil {
			t.Errorf("%v: %s", err, again)
		}
	})
}

func TestFindCalibration(t *testing.T) {
	for _, name := range []string{"h200", "H200", "nvidia h200"} {
		if c, err := FindCalibration(name); err != nil || c.Card != "NVIDIA H200" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := FindCalibration("a100"); err == nil || !strings.Contains(err.Error(), "(built in: h200)") || !strings.Contains(err.Error(), "lowtoggle calibrate") {
		t.Error(err)
	}
}

// TestUnknownTypes: an unknown type is an error, or is predicted by another type's model with a note.
func TestUnknownTypes(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	_, x := drawn(t, "zeros", weights.F32, 64, 64, 1)
	for _, p := range []Product{{M: 64, N: 64, K: 64}, {Type: arith.TF32, M: 64, N: 64, K: 64}, {Type: arith.TF32, M: 64, N: 64, K: 64, Cold: true}} {
		if _, err := c.Predict(t.Context(), p, x, x); err == nil || !strings.Contains(err.Error(), "only of bf16") {
			t.Errorf("%+v: %v", p, err)
		}
	}
	data, _ := drawn(t, "normal(0,1)", weights.F32, 128, 128, 1)
	w := Weights{DType: weights.F32, Rows: 128, Cols: 128, Bands: []Band{{Data: data}}}
	e, err := c.Energy(t.Context(), w, Stationary, Workload{Decode: 1})
	if err != nil || !strings.Contains(e.Calibration, "bf16 applied to F32") {
		t.Errorf("%+v, %v", e, err)
	}
	p, err := c.Predict(t.Context(), Product{Type: arith.FP32, M: 64, N: 64, K: 64, Cold: true}, x, x)
	if err != nil || p.Calibration != e.Calibration || p.Joules != nil || !slices.Contains(p.Warnings, "fp32 was not calibrated with weights from memory: the prediction uses the model of bf16, with a wider interval") {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestSampleIsEnough: for homogeneous weights, the prediction from a sample is within 0.2 points.
func TestSampleIsEnough(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"normal(0,0.02)", "normal(0,0.02) | round(4)", "normal(0,0.02) | sparse(0.5)"} {
		_, w := drawn(t, text, weights.BF16, 2048, 1024, 1)
		_, x := drawn(t, "normal(0,1)", weights.BF16, 2048, 1024, 2)
		for _, role := range []Role{Stationary, Streaming} {
			p, err := c.Predict(t.Context(), Product{Type: arith.BF16, M: 2048, N: 2048, K: 1024, Role: role}, x, w)
			if err != nil || !(p.SamplingError < 0.002) {
				t.Errorf("%s: sampling error %v (%v)", text, p.SamplingError, err)
			}
			if text == "normal(0,0.02)" && math.Abs(p.Relative-1) > 0.004 {
				t.Errorf("random weights have the relative energy %v", p.Relative)
			}
		}
	}
}

// TestCeiling: the ceiling is below the energy of any weights, and above 0.
func TestCeiling(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []Workload{{Prefill: 1}, {Decode: 1}, {Prefill: 0.5, Decode: 0.5}} {
		for _, role := range []Role{Stationary, Streaming} {
			v, err := c.Ceiling(Multiplied{Operand: weights.BF16}, 8192, 8192, role, l)
			if err != nil || !(v.Relative > 0.5 && v.Relative < 0.8) || !(v.Interval[0] < v.Relative && v.Relative < v.Interval[1]) {
				t.Errorf("%v %v: %v, %v", role, l, v, err)
			}
		}
	}
}
