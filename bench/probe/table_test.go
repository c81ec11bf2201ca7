package probe_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/probe"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

// tabled are patterns of several kinds, first random weights.
var tabled = []string{"normal(0,0.02)", "zeros", "const(0.02)", "normal(0,0.02) | round(2)", "normal(0,0.02) | round(4)", "normal(0,0.02) | round(6)",
	"normal(0,0.02) | grid(4)", "normal(0,0.02) | sparse(50%)", "normal(0,0.02) | sparse(80%)", "normal(0,0.02) | repeat(rows=4)", "normal(0,0.02) | abs",
	"normal(0,0.02) | grid(16)", "set(16,normal(0,0.02))"}

// cube is a product that tests predict fast.
var cube = cost.Product{Type: arith.BF16, M: 256, N: 256, K: 256}

// predicted returns the relative energy and time of a pattern.
func predicted(t *testing.T, c *cost.Calibration, text string) cost.Prediction {
	t.Helper()
	operand := func(text string, seed uint64) cost.Operand {
		o, err := probe.Operand(t.Context(), pattern.MustParse(text), pattern.Spec{DType: weights.BF16, Rows: 256, Cols: 256, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	p, err := c.Predict(t.Context(), cube, operand("normal(0,1)", 1), operand(text, 2))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// table returns the measurements of a card that behaves as the built-in calibration predicts, with columns in an order of its own.
func table(t *testing.T) (string, *cost.Calibration) {
	t.Helper()
	h200, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("role,Pattern,shape,joules,seconds,type\n")
	for _, text := range tabled {
		p := predicted(t, h200, text)
		fmt.Fprintf(&b, "stationary,\"%s\",256x256x256,%g,%g,bf16\n", text, 2*p.Relative, 0.004*p.RelativeTime)
	}
	return b.String(), h200
}

// TestTable fits to a table and predicts a pattern that the table lacks.
func TestTable(t *testing.T) {
	text, h200 := table(t)
	rows, err := probe.ReadTable("power.csv", strings.NewReader(text))
	if err != nil || len(rows) != len(tabled) || rows[1].Line != 3 || math.Abs(rows[0].Watts-500) > 1 {
		t.Fatal(rows, err)
	}
	c, err := probe.Table{Rows: rows, Card: "A card", Date: "2026-11-23"}.Calibrate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Card != "A card" || len(c.Models) != 1 || c.Models[0].Quality.Points == 0 {
		t.Errorf("%s, %d models: %+v", c.Card, len(c.Models), c.Models)
	}
	const other = "normal(0,0.02) | round(5)"
	if have, want := predicted(t, c, other).Relative, predicted(t, h200, other).Relative; math.Abs(have-want) > 0.01 {
		t.Errorf("%s: %.4f, want %.4f", other, have, want)
	}
}

// written is the file of a calibration.
func written(t *testing.T, c *cost.Calibration) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "calibration.json")
	if err := c.Write(name); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTableGoesOn interrupts a fit and continues with the kept features. The result has the bytes of an undisturbed fit.
func TestTableGoesOn(t *testing.T) {
	text, _ := table(t)
	rows, err := probe.ReadTable("power.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "features.json")
	ctx, cancel := context.WithCancel(t.Context())
	of := probe.Table{Rows: rows, Card: "A card", Date: "2026-11-23", Kept: kept, Progress: func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}}
	if _, err := of.Calibrate(ctx); err == nil {
		t.Fatal("the fit was not interrupted")
	}
	data, err := os.ReadFile(kept)
	if err != nil || strings.Count(string(data), "BF16")+strings.Count(string(data), "bf16") < 3 {
		t.Fatalf("kept: %s, %v", data, err)
	}
	of.Progress = nil
	continued, err := of.Calibrate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := probe.Table{Rows: rows, Card: "A card", Date: "2026-11-23"}.Calibrate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if have, want := written(t, continued), written(t, whole); have != want {
		t.Errorf("a fit that continued differs from an undisturbed one:\n%s\nwant\n%s", have, want)
	}
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Errorf("the features are still there: %v", err)
	}
	if err := os.WriteFile(kept, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := of.Calibrate(t.Context()); err == nil || !strings.Contains(err.Error(), "move the file away") {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestTableErrors checks that errors name the line and the column.
func TestTableErrors(t *testing.T) {
	const header = "pattern,type,shape,role,joules,seconds,watts\n"
	good := "\"normal(0,0.02)\",bf16,256x256x256,stationary,2,0.004,500\n"
	for text, want := range map[string]string{
		"":                          "f.csv: the file is empty",
		"pattern,typ\n":             `f.csv:1: unknown column "typ" (did you mean type?)`,
		"pattern;type\n":            "f.csv:1: semicolons separate the columns: separate the columns with commas",
		"pattern,type,type\n":       "f.csv:1: column type occurs twice",
		"pattern,type,shape,role\n": "f.csv:1: column joules is missing",
		header + good + "x\n":       "f.csv:3: 1 cells, and the header has 7: quote patterns that contain a comma",
		header + good + "\"norml(0,1)\",bf16,8x8x8,stationary,2,1,2\n": "f.csv:3: column pattern: expected a source, found norml",
		header + "zeros,bf17,8x8x8,stationary,2,1,2\n":                 "f.csv:2: column type: unknown arithmetic",
		header + "zeros,bf16,8x8,stationary,2,1,2\n":                   `f.csv:2: column shape: "8x8": give M, N and K`,
		header + "zeros,bf16,8x8x8,stable,2,1,2\n":                     "f.csv:2: column role: unknown role",
		header + "zeros,bf16,8x8x8,streaming,-2,1,2\n":                 `f.csv:2: column joules: "-2": give a number above 0`,
		header + "zeros,bf16,8x8x8,streaming,2,,2\n":                   `f.csv:2: column seconds: "": give a number above 0`,
		header + "zeros,bf16,8x8x8,streaming,2,1,700\n":                "f.csv:2: column watts: 700 W, and joules / seconds is 2 W",
	} {
		if _, err := probe.ReadTable("f.csv", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
	zeros := "zeros,bf16,256x256x256,stationary,1,0.004,250\n"
	for text, want := range map[string]string{
		strings.ReplaceAll(header+good+strings.Repeat(zeros, 12), "bf16", "int8"):                                                                                   "line 2: normal(0,0.02) is nothing but zeros in I8, so the other rows cannot be compared with it: measure random weights such as normal(0,32)",
		header + good + zeros + "const(1),bf16,256x256x256,stationary,970,2,485\n" + strings.Repeat(zeros, 12):                                                      "line 4: the energy is 485 × the energy of the random weights: give joules and seconds of one execution",
		header + good + zeros + "const(1),bf16,256x256x256,stationary,0.002,0.000004,500\n" + strings.Repeat(zeros, 12):                                             "line 4: the energy is 0.001 × the energy of the random weights",
		header + good + strings.Repeat(zeros, 13):                                                                                                                   "bf16 with weights on chip: a fit needs 12 patterns of several kinds besides random weights, and the table has 1",
		header + "\"normal(0,0.02)\",bf16,256x256x256,stationary,2000,0.004,500000\n" + strings.Repeat("zeros,bf16,256x256x256,stationary,1000,0.004,250000\n", 12): "line 2: random weights draw 500000 W, but no card draws over 10000 W: give the joules",
		header + strings.Repeat(zeros, 13): "lines 2 to 14, bf16 256x256x256 stationary: no baseline row",
	} {
		rows, err := probe.ReadTable("f.csv", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (probe.Table{Rows: rows, Card: "c"}).Calibrate(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTableRepeats: rows of one pattern are one point, the mean of the rows, and copies of the baseline are left out.
func TestTableRepeats(t *testing.T) {
	text, _ := table(t)
	read := func(text string) probe.Table {
		t.Helper()
		rows, err := probe.ReadTable("power.csv", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return probe.Table{Rows: rows, Card: "A card", Date: "2026-11-23"}
	}
	once := read(text)
	var zeros probe.Row
	for _, r := range once.Rows {
		if r.Weights.String() == "zeros" {
			zeros = r
		}
	}
	again := func(times float64) string {
		return fmt.Sprintf("stationary,zeros,256x256x256,%g,%g,bf16\n", times*zeros.Joules, times*zeros.Seconds)
	}
	more := read(text + again(1.1) + again(0.9) + "stationary,\"normal(0,0.02) (copy)\",256x256x256,3,0.006,bf16\n")
	if copies, repeated := more.Repeats(); copies != 1 || repeated != 2 {
		t.Errorf("%d copies, %d repeated", copies, repeated)
	}
	if copies, repeated := once.Repeats(); copies+repeated != 0 {
		t.Errorf("%d copies, %d repeated in a table without any", copies, repeated)
	}
	a, err := once.Calibrate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := more.Calibrate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Series[0].Points) != len(b.Series[0].Points) {
		t.Fatalf("%d points, and with repeated rows %d", len(a.Series[0].Points), len(b.Series[0].Points))
	}
	for i, o := range a.Series[0].Points {
		if math.Abs(o.Energy-b.Series[0].Points[i].Energy) > 1e-4 {
			t.Errorf("%s: %g, and with repeated rows %g", o.W, o.Energy, b.Series[0].Points[i].Energy)
		}
	}
}

// TestTableInputs: the fit assumes the inputs that measure multiplies by default.
func TestTableInputs(t *testing.T) {
	text, _ := table(t)
	for typ, want := range map[string]string{"bf16": "normal(0,1)", "int8": "normal(0,32)"} {
		rows, err := probe.ReadTable("power.csv", strings.NewReader(strings.ReplaceAll(strings.ReplaceAll(text, "bf16", typ), "0.02", "20")))
		if err != nil {
			t.Fatal(err)
		}
		c, err := probe.Table{Rows: rows, Card: "A card", Date: "2026-11-23"}.Calibrate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if x := c.Series[0].Baseline.X; x != want {
			t.Errorf("%s: %s, want %s", typ, x, want)
		}
	}
}

// TestTableStatic: the static power that a fit assumes changes by less than half a point a prediction at the clock of the measurements.
func TestTableStatic(t *testing.T) {
	text, _ := table(t)
	rows, err := probe.ReadTable("power.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var found []float64
	for _, watts := range []float64{60, 150} {
		prior, err := cost.ReadCalibration("../../cost/calibrations/h200.json")
		if err != nil {
			t.Fatal(err)
		}
		prior.Facts.Power.Static = cost.Likely{Usual: watts, Low: watts, High: watts}
		c, err := probe.Table{Rows: rows, Card: "A card", Date: "2026-11-23", Prior: prior}.Calibrate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, predicted(t, c, "normal(0,0.02) | round(5)").Relative)
	}
	if math.Abs(found[0]-found[1]) > 0.005 {
		t.Errorf("relative energy %.4f with a static power of 60 W, and %.4f with 150 W", found[0], found[1])
	}
	t.Log(found)
}
