package transform_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// demoModel returns the embedded model in a new folder. The caller closes the model and removes the folder.
func demoModel() (m *weights.Model, dir string) {
	dir, err := os.MkdirTemp("", "example")
	check(err)
	check(demo.Write(filepath.Join(dir, "model")))
	m, err = weights.Open(filepath.Join(dir, "model"))
	check(err)
	return m, dir
}

// One call converts within a budget of loss: perplexity may rise by 1 %. Convert plans on calibration tokens, writes
// the folder, and compares the losses on evaluation tokens.
func ExampleConvert_budgetOfLoss() {
	m, dir := demoModel()
	defer os.RemoveAll(dir)
	defer m.Close()
	calibration, err := cost.FindCalibration("h200")
	check(err)
	passes, err := transform.ParsePasses("grid=8,compensate=0.01")
	check(err)
	file, err := tokens.Open(tokens.Path(m.Dir))
	check(err)
	t, err := transform.NewTokens(m, file, nil, nil, 0)
	check(err)
	t.Dir = filepath.Join(dir, "search")
	budget := math.Log1p(0.01)
	c, err := transform.Convert(context.Background(), m, filepath.Join(dir, "out"), transform.ConvertOptions{
		Options: transform.Options{Passes: passes, Budget: pass.Budget{MaxLoss: &budget}, Tokens: t, Cost: calibration},
	})
	check(err)
	fmt.Println("within the budget:", c.WithinBudget())
	fmt.Println("energy is predicted to fall:", transform.Predicted(m, c.Plan).Relative < 1)
	// Output:
	// within the budget: true
	// energy is predicted to fall: true
}

// A plan is data: a program can inspect it before applying it, and verify the result without it.
func ExamplePlan() {
	m, dir := demoModel()
	defer os.RemoveAll(dir)
	defer m.Close()
	calibration, err := cost.FindCalibration("h200")
	check(err)
	passes, err := transform.ParsePasses("round=4")
	check(err)
	ctx := context.Background()
	p, err := transform.Plan(ctx, m, transform.Options{Passes: passes, Cost: calibration})
	check(err)
	fmt.Println(len(p.Steps), "steps; the first:", transform.Passes.Describe(p.Steps[0]))

	out := filepath.Join(dir, "out")
	_, err = transform.Apply(ctx, m, p, out, transform.ApplyOptions{})
	check(err)
	converted, err := weights.Open(out)
	check(err)
	defer converted.Close()
	report, err := transform.Verify(ctx, m, converted, transform.VerifyOptions{})
	check(err)
	fmt.Println("verified:", report.OK)
	// Output:
	// 29 steps; the first: round 4 bits
	// verified: true
}
