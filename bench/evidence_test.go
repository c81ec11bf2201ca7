package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/transform"
)

// evidence reads records and runs commands for claims. It keeps what it has read and run.
type evidence struct {
	*testing.T
	temp     string
	frontier *frontier
	outputs  map[string]string // of commands
}

func newEvidence(t *testing.T) *evidence {
	t.Helper()
	f, err := loadFrontier(recorded)
	if err != nil {
		t.Fatal(err)
	}
	temp, err := os.MkdirTemp("", "lt") // a short name: outputs shorten long ones
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	return &evidence{t, temp, f, map[string]string{}}
}

// llama returns the folder of llama-17m, or nothing if it is missing or tests must be short.
func (e *evidence) llama() string {
	e.Helper()
	if testing.Short() {
		return ""
	}
	return llama17m(e.T)
}

// llama17m returns the folder of the model, in LOWTOGGLE_MODELS or beside the checkout, or nothing.
func llama17m(t *testing.T) string {
	t.Helper()
	for _, models := range []string{os.Getenv("LOWTOGGLE_MODELS"), filepath.Join("..", "..", "shared", "models")} {
		dir, err := filepath.Abs(filepath.Join(models, "llama-17m"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); models != "" && err == nil {
			return dir
		}
	}
	return ""
}

// demo returns the folder that demo --keep writes.
func (e *evidence) demo() string {
	dir := filepath.Join(e.temp, "demo")
	e.command("demo", "--keep", dir, "--json")
	return dir
}

// command returns the output of lowtoggle, which it runs once.
func (e *evidence) command(args ...string) string {
	e.Helper()
	line := strings.Join(args, "\x00")
	if out, ok := e.outputs[line]; ok {
		return out
	}
	var out, errors bytes.Buffer
	if status := cli.Main(context.Background(), append([]string{"lowtoggle"}, args...), &out, &errors); status != 0 && status != 3 {
		e.Fatalf("%s: exit status %d: %s", args, status, &errors)
	}
	e.outputs[line] = out.String()
	return out.String()
}

// converted returns the folder of a conversion, or nothing without a model. Models are named by their folders.
func (e *evidence) converted(model string, args ...string) string {
	e.Helper()
	if model == "" {
		return ""
	}
	key := strings.Join(append([]string{"converted", model}, args...), "\x00")
	if out, ok := e.outputs[key]; ok {
		return out
	}
	out := filepath.Join(e.temp, strconv.Itoa(len(e.outputs)))
	e.command(append([]string{"convert", model, out, "--quiet"}, args...)...)
	e.outputs[key] = out
	return out
}

// verified is a part of the output of verify --json.
type verified struct {
	Tensors []struct {
		Class string
		SNR   *float64 `json:"snr_db"`
	}
	verifiedEnergy
}

// verifiedEnergy is the prediction in the output of verify --json.
type verifiedEnergy struct {
	Energy struct {
		Predicted struct {
			Relative float64    `json:"relative_energy"`
			Interval [2]float64 `json:"interval"`
		}
	}
}

// verify returns the result of lowtoggle verify for a conversion; nil without one.
func (e *evidence) verify(model, out, workload string) *verified {
	e.Helper()
	if out == "" {
		return nil
	}
	var v verified
	if err := json.Unmarshal([]byte(e.command("verify", model, out, "--workload", workload, "--json")), &v); err != nil {
		e.Fatal(err)
	}
	return &v
}

// predicted returns the change of energy that verify predicts for a conversion.
func (e *evidence) predicted(model, out, workload string) string {
	e.Helper()
	v := e.relative(model, out, workload)
	if math.IsNaN(v) {
		return ""
	}
	return percent(change(v), 1)
}

// relative returns the energy that verify predicts for a conversion, relative to its source; NaN without a model.
func (e *evidence) relative(model, out, workload string) float64 {
	e.Helper()
	v := e.verify(model, out, workload)
	if v == nil {
		return math.NaN()
	}
	return v.Energy.Predicted.Relative
}

// points returns a difference of relative energies, in percentage points.
func points(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return printed(1, 100*v)
}

// lowestSNR returns the lowest output SNR of a conversion's lossy layers.
func (e *evidence) lowestSNR(model, out string) string {
	e.Helper()
	v := e.verify(model, out, "prefill")
	if v == nil {
		return ""
	}
	least := math.Inf(1)
	for _, t := range v.Tensors {
		if t.Class == "lossy" && t.SNR != nil {
			least = min(least, *t.SNR)
		}
	}
	return fmt.Sprintf("%.1f dB", least)
}

// of returns a variant of a recorded comparison, by its name without path and colon. The null comparison is "copy".
func (e *evidence) of(file, variant string) power.Comparison {
	e.Helper()
	return comparisonOf(e.T, file, variant)
}

func comparisonOf(t *testing.T, file, variant string) power.Comparison {
	t.Helper()
	r := recordedRun(t, file)
	if variant == "copy" {
		return r.Null
	}
	for _, v := range r.Variants {
		if variantName(v) == variant {
			return v
		}
	}
	t.Fatalf("%s has no %s", file, variant)
	return power.Comparison{}
}

// measured returns a variant's change of energy with the half width of its interval, such as −3.7 % ± 0.2.
func (e *evidence) measured(file, variant string, decimals int) string {
	e.Helper()
	return changed(e.of(file, variant), decimals)
}

func changed(c power.Comparison, decimals int) string {
	return fmt.Sprintf("%s ± %.*f", percent(change(c.RelativeEnergy), decimals), decimals, 100*halfWidth(c))
}

// spent returns the measured change of energy of a point of the frontier.
func (e *evidence) spent(point string) string {
	e.Helper()
	p := e.point(point)
	return changed(e.frontier.reading(p, e.frontier.of(p.home())).Comparison, 1)
}

func (e *evidence) point(name string) *frontierPoint {
	e.Helper()
	p := e.frontier.find(name)
	if p == nil {
		e.Fatalf("the frontier has no point %s", name)
	}
	return p
}

// rise returns the rise of perplexity in per cent.
func (e *evidence) rise(point string, decimals int) string {
	e.Helper()
	return percent(e.point(point).rise, decimals)
}

// whole returns the change of energy per token of a whole model.
func (e *evidence) whole(record, passes string) string {
	e.Helper()
	row := readWhole[wholeRecord](e.T, record).row(passes)
	if row == nil {
		e.Fatalf("whole-%s.json has no %s", record, passes)
	}
	return changed(power.Comparison{RelativeEnergy: row.Relative, Interval: row.Interval}, 1)
}

// record returns the groups of a pattern that matches a text of bench/results once.
func (e *evidence) record(file, pattern string) []string {
	e.Helper()
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(e.text(file), -1)
	if len(all) != 1 {
		e.Fatalf("%s: %d places match %q, want one", file, len(all), pattern)
	}
	return all[0][1:]
}

// text returns a file of bench/results.
func (e *evidence) text(file string) string {
	e.Helper()
	text, err := os.ReadFile(filepath.Join("results", file))
	if err != nil {
		e.Fatal(err)
	}
	return string(text)
}

// number reads a number of a record.
func (e *evidence) number(text string) float64 {
	e.Helper()
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.ReplaceAll(text, " ", ""), "−", "-"), 64)
	if err != nil {
		e.Fatal(err)
	}
	return v
}

// printed returns a number with the given number of decimals, as pages print it.
func printed(decimals int, v float64) string {
	return strings.Replace(strconv.FormatFloat(v, 'f', decimals, 64), "-", "−", 1)
}

// recipe returns a built-in recipe.
func (e *evidence) recipe(name string) transform.Recipe {
	e.Helper()
	r, err := transform.FindRecipe(name)
	if err != nil {
		e.Fatal(err)
	}
	return r
}

// remaining returns the energy that is left, such as 94.7 % ± 0.1.
func remaining(c power.Comparison) string {
	return fmt.Sprintf("%.1f %% ± %.1f", 100*c.RelativeEnergy, 100*halfWidth(c))
}

// saved returns the change of energy of a variant without its sign.
func saved(c power.Comparison, decimals int) string {
	return printed(decimals, -change(c.RelativeEnergy)) + " %"
}

// evaluated is a model in the output of lowtoggle eval.
type evaluated struct {
	Model      string
	Loss       float64
	Perplexity float64
	Tokens     int
	Against    *struct {
		Difference float64    `json:"loss_difference"`
		Interval   [2]float64 // of Difference
		Ratio      float64    `json:"perplexity_ratio"`
	}
}

// evaluation returns the result of lowtoggle eval for a model.
func (e *evidence) evaluation(model string) evaluated {
	e.Helper()
	var all struct{ Models []evaluated }
	read(e.T, "results/llama-17m-eval.json", &all)
	for _, m := range all.Models {
		if m.Model == model {
			return m
		}
	}
	e.Fatalf("no evaluation of %s", model)
	return evaluated{}
}

// evaluated returns a model's rise of perplexity by lowtoggle eval.
func (e *evidence) evaluated(model string, decimals int) string {
	e.Helper()
	return percent(change(e.evaluation(model).Against.Ratio), decimals)
}

// lost returns the rise of perplexity that bench/loss.py measured for a conversion.
func (e *evidence) lost(model string, decimals int) string {
	e.Helper()
	var all lossReport
	read(e.T, "results/llama-17m-loss.json", &all)
	of, ok := all.Converted[model]
	if !ok {
		e.Fatalf("no loss of %s", model)
	}
	return percent(of.Rise, decimals)
}

// sameBytes checks that two conversions have the same weights.
func (e *evidence) sameBytes(one, other string) {
	e.Helper()
	if one == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(one, "*.safetensors"))
	if err != nil || files == nil {
		e.Fatal(one, err)
	}
	for _, file := range files {
		have, err := os.ReadFile(file)
		if err != nil {
			e.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(other, filepath.Base(file)))
		if err != nil || !bytes.Equal(have, want) {
			e.Errorf("%s differs (%v)", filepath.Base(file), err)
		}
	}
}
