package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

// frontierRises are the rises of perplexity, in per cent, that the page's first tables show for each workload.
var frontierRises = []struct {
	workload string
	rise     float64
}{{stationary, 0.1}, {stationary, 0.5}, {stationary, 1.2}, {decode, 0.1}}

// Workloads, as the names of the measurements' files have them. In prefill, weights are stationary or streaming.
const (
	stationary = "stationary"
	streaming  = "streaming"
	decode     = "decode"
)

// strategies in the order of tables and legend. Those with compensation have solid lines.
var strategies = []struct {
	name, label, doc string
	style            chart.Style
}{
	{"round", "round", "low mantissa bits rounded away", chart.Style{Colour: 1, Marker: 1, Dashes: 1}},
	{"grid", "grid", "values rounded to multiples of their row's step, a power of two", chart.Style{Colour: 2, Marker: 2, Dashes: 1}},
	{"grid-c", "grid + compensated", "like grid; columns that are not yet rounded absorb the error", chart.Style{Colour: 4, Marker: 2}},
	{"trellis", "trellis", "rate–distortion-optimised rounding: each value is chosen by its output error and the energy of its bits", chart.Style{Colour: 3, Marker: 3, Dashes: 1}},
	{"trellis-c", "trellis + compensated", "like trellis; columns that are not yet rounded absorb the error", chart.Style{Colour: 5, Marker: 3}},
	{"full", "trellis + compensated + pruned", "like trellis + compensated; whole inputs are zeroed where zeros save more", chart.Style{Colour: 0, Marker: 4}},
}

// widestNull is the largest half width allowed for the comparison of the weights with a copy.
const widestNull = 0.005

// TestFrontierPage checks that docs/frontier.md and its plot agree with the recorded results.
func TestFrontierPage(t *testing.T) {
	const page, plot = "../docs/frontier.md", "../docs/frontier.svg"
	if files, err := filepath.Glob(recorded + "frontier-*.json"); err != nil || files == nil {
		if _, err := os.Stat(page); err == nil {
			t.Fatalf("%s is there without the results that it is made of, in %s", page, recorded)
		}
		t.Skipf("there is no frontier-*.json in %s yet", recorded)
	}
	f, err := loadFrontier(recorded)
	if err != nil {
		t.Fatal(err)
	}
	f.misses = nullMisses(t)
	for _, variant := range []string{"onemag", "pow2", "colend25", "colend50", "rows25"} {
		v := comparisonOf(t, "structure-stationary", variant)
		f.notes = append(f.notes, "{structure "+variant+"}", fmt.Sprintf("%.1f %% ± %.1f", -change(v.RelativeEnergy), 100*halfWidth(v)))
	}
	if unknown := regexp.MustCompile(`\{[^}]*\}`).FindString(string(f.page())); unknown != "" {
		t.Errorf("frontierNotes ask for %s, which nothing records: name another point", unknown)
	}
	goldenfile.Same(t, page, f.page())
	goldenfile.Same(t, plot, f.plot())
}

// frontier holds all recorded points and runs.
type frontier struct {
	lossReport
	points []*frontierPoint
	runs   []*frontierRun
	notes  []string // names in frontierNotes and figures of other records, in turn
	misses string   // says how often a copy's interval misses 1
}

// frontierPoint is one conversion. Shares and perplexity's rise are in per cent.
type frontierPoint struct {
	frontierPlan
	strategy        string
	rise, low, high float64 // of perplexity on evaluation tokens
}

// frontierPlan is an element of frontier-plans.json.
type frontierPlan struct {
	Name      string  `json:"name"` // STRATEGY-BUDGET, with decode- before it for decode
	Passes    string  `json:"passes"`
	MaxLoss   float64 `json:"max_loss_percent"`
	Workload  string  `json:"workload"` // prefill or decode
	Seconds   float64 `json:"seconds"`  // of planning
	Predicted float64 `json:"predicted"`
}

// lossReport is the output of loss.py.
type lossReport struct {
	Model     string  `json:"model"`
	Tokens    int     `json:"tokens"`
	Loss      float64 `json:"loss"`
	Converted map[string]struct {
		Interval []float64 `json:"interval"` // of the loss's rise, in nats
		Rise     float64   `json:"perplexity_rises_by_percent"`
	} `json:"converted"`
}

// frontierRun is the output of measure. A point may be in several runs of a workload.
type frontierRun struct {
	file, workload string
	number         int // among the runs of the workload, from 1
	*measure.Result
	measured map[string]power.Comparison // by the point's name
}

// frontierReading is the reading of a point in a run.
type frontierReading struct {
	point *frontierPoint
	run   *frontierRun
	power.Comparison
}

// home returns the workload in which the point must be measured.
func (p *frontierPoint) home() string {
	if p.Workload == decode {
		return decode
	}
	return stationary
}

// loadFrontier reads frontier-*.json of a folder and reports all faults at once.
func loadFrontier(folder string) (*frontier, error) {
	var f frontier
	var plans []frontierPlan
	err := errors.Join(decodeFile(filepath.Join(folder, "frontier-plans.json"), &plans),
		decodeFile(filepath.Join(folder, "frontier-loss.json"), &f.lossReport))
	if err != nil {
		return nil, err
	}
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for _, p := range plans {
		point, err := f.point(p)
		if err != nil {
			fail("frontier-plans.json: %w", err)
			continue
		}
		f.points = append(f.points, point)
	}
	for name := range f.Converted {
		if f.find(name) == nil {
			fail("frontier-loss.json has %s, of which frontier-plans.json has no plan", name)
		}
	}
	for _, workload := range []string{stationary, streaming, decode} {
		files, err := filepath.Glob(filepath.Join(folder, "frontier-"+workload+"*.json"))
		if err != nil {
			return nil, err
		}
		for i, file := range files {
			run := &frontierRun{filepath.Base(file), workload, i + 1, new(measure.Result), map[string]power.Comparison{}}
			if err := decodeFile(file, run.Result); err != nil {
				return nil, err
			}
			wrong = append(wrong, f.add(run))
		}
	}
	for _, p := range f.points {
		if f.reading(p, f.of(p.home())) == nil {
			fail("%s was planned, and no frontier-%s*.json measures it", p.Name, p.home())
		}
	}
	slices.SortFunc(f.points, func(a, b *frontierPoint) int {
		return cmp.Or(cmp.Compare(strategyIndex(a.strategy), strategyIndex(b.strategy)),
			-cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.MaxLoss, b.MaxLoss))
	})
	return &f, errors.Join(wrong...)
}

func decodeFile(path string, v any) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

// point returns a plan with its loss.
func (f *frontier) point(p frontierPlan) (*frontierPoint, error) {
	prefix := ""
	if p.Workload == decode {
		prefix = "decode-"
	}
	strategy, ok := strings.CutSuffix(p.Name, "-"+strconv.FormatFloat(p.MaxLoss, 'g', -1, 64))
	strategy, begins := strings.CutPrefix(strategy, prefix)
	loss, judged := f.Converted[p.Name]
	switch {
	case !ok || !begins || p.Workload != "prefill" && p.Workload != decode:
		return nil, fmt.Errorf("%s: its name is not that of workload %q and %v %%", p.Name, p.Workload, p.MaxLoss)
	case strategyIndex(strategy) < 0:
		return nil, fmt.Errorf("%s: strategy %q is not among strategies in frontier_test.go: add it with a look", p.Name, strategy)
	case f.find(p.Name) != nil:
		return nil, fmt.Errorf("%s is there twice", p.Name)
	case !(p.Predicted > 0) || p.Passes == "":
		return nil, fmt.Errorf("%s lacks its passes or its prediction", p.Name)
	case !judged || len(loss.Interval) != 2:
		return nil, fmt.Errorf("%s has no loss with an interval in frontier-loss.json", p.Name)
	}
	percent := func(nats float64) float64 { return 100 * math.Expm1(nats) }
	return &frontierPoint{p, strategy, loss.Rise, percent(loss.Interval[0]), percent(loss.Interval[1])}, nil
}

// add adds a run, with its variants by the names of their points.
func (f *frontier) add(r *frontierRun) error {
	var wrong []error
	fail := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s: %w", r.file, fmt.Errorf(format, args...)))
	}
	f.runs = append(f.runs, r)
	switch {
	case r.Result.Result == nil || r.Simulated || len(r.Products) == 0:
		fail("is not what measure prints of a card")
		return errors.Join(wrong...)
	case r.Cold != (r.workload == decode) || r.Products[0].Problem.Streaming != (r.workload == streaming):
		fail("was measured with weights cold: %v, streaming: %v, which is another workload than its name says", r.Cold, r.Products[0].Problem.Streaming)
	case len(r.Null.Interval) != 2:
		fail("its null comparison has no interval: measure for longer")
	case halfWidth(r.Null) > widestNull:
		fail("its null comparison is good to ±%.2f %% only, not to ±%.1f %%: measure for longer", 100*halfWidth(r.Null), 100*widestNull)
	case !r.Valid && len(r.Invalid) == 0:
		fail("is not valid and does not say why: measure again")
	}
	for _, v := range r.Variants {
		name := variantName(v)
		p := f.find(name)
		switch {
		case len(v.Interval) != 2 || !(v.RelativeTime > 0):
			fail("%s has no time or no interval: measure for longer", name)
		case name == "zeros":
		case p == nil || (p.Workload == decode) != (r.workload == decode):
			fail("has %s, of which frontier-plans.json has no plan for this workload", name)
		case r.measured[name].Interval != nil:
			fail("%s is there twice: leave one of the two", name)
		default:
			r.measured[name] = v
		}
	}
	return errors.Join(wrong...)
}

// variantName returns the folder's name.
func variantName(v power.Comparison) string { return filepath.Base(strings.TrimSuffix(v.Name, ":")) }

// of returns the runs of a workload.
func (f *frontier) of(workload string) (runs []*frontierRun) {
	for _, r := range f.runs {
		if r.workload == workload {
			runs = append(runs, r)
		}
	}
	return runs
}

func (f *frontier) find(name string) *frontierPoint {
	i := slices.IndexFunc(f.points, func(p *frontierPoint) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return f.points[i]
}

func strategyIndex(name string) int {
	for i, s := range strategies {
		if s.name == name {
			return i
		}
	}
	return -1
}

func halfWidth(c power.Comparison) float64 { return (c.Interval[1] - c.Interval[0]) / 2 }

// change returns a ratio's change in per cent.
func change(ratio float64) float64 { return 100 * (ratio - 1) }

// reading returns a point's reading in the first valid run that has the point, else in the first run; nil if none has.
func (f *frontier) reading(p *frontierPoint, runs []*frontierRun) (first *frontierReading) {
	for _, r := range runs {
		m, ok := r.measured[p.Name]
		if ok && r.Valid {
			return &frontierReading{p, r, m}
		}
		if ok && first == nil {
			first = &frontierReading{p, r, m}
		}
	}
	return first
}

// best returns the least energy in the runs among points of the strategies (all if none is given) whose measured
// perplexity rose by at most rise per cent; nil if there is none.
func (f *frontier) best(runs []*frontierRun, rise float64, of ...string) (least *frontierReading) {
	for _, p := range f.points {
		if p.rise > rise || len(of) > 0 && !slices.Contains(of, p.strategy) {
			continue
		}
		m := f.reading(p, runs)
		if m != nil && (least == nil || m.RelativeEnergy < least.RelativeEnergy) {
			least = m
		}
	}
	return least
}

// inventedFrontier returns invented frontier-*.json files by name: two budgets for round, grid and full in prefill, one
// for round and full in decode. A test may change them before it writes them.
func inventedFrontier() map[string]any {
	type object = map[string]any
	var plans []any
	losses := object{}
	variants := map[string][]any{}
	compared := func(name string, ratio float64) object {
		return object{"name": name, "relative_energy": ratio, "interval": []float64{ratio - 0.002, ratio + 0.002}, "relative_time": ratio}
	}
	add := func(name, passes, workload string, allowed, rise, ratio float64) {
		plans = append(plans, object{"name": name, "passes": passes, "max_loss_percent": allowed, "workload": workload, "seconds": 60, "predicted": 0.95})
		nats := math.Log1p(rise / 100)
		losses[name] = object{"loss_rises_by": nats, "interval": []float64{nats - 2e-4, nats + 2e-4}, "perplexity_rises_by_percent": rise}
		file := map[string]string{"prefill": "frontier-stationary-1.json", decode: "frontier-decode.json"}[workload]
		if passes == "grid" {
			file = "frontier-stationary-2.json"
		}
		variants[file] = append(variants[file], compared(name+":", ratio))
	}
	add("full-0.5", "prune,trellis,compensate", "prefill", 0.5, 0.6, 0.88) // rose by more than it was allowed
	add("full-0.1", "prune,trellis,compensate", "prefill", 0.1, 0.08, 0.899)
	add("grid-0.5", "grid", "prefill", 0.5, 0.09, 0.93) // rose by much less
	add("grid-0.1", "grid", "prefill", 0.1, -0.02, 0.97)
	add("round-0.1", "round", "prefill", 0.1, 0.05, 0.96)
	add("round-0.5", "round", "prefill", 0.5, 0.45, 0.92)
	add("decode-round-0.1", "round", decode, 0.1, 0.05, 0.91)
	add("decode-full-0.1", "prune,trellis,compensate", decode, 0.1, 0.11, 0.87)
	files := map[string]any{
		"frontier-plans.json": plans,
		"frontier-loss.json":  object{"model": "invented", "tokens": 4096, "loss": 0.5, "converted": losses},
	}
	for file, list := range variants {
		files[file] = object{
			"gpu": "an invented card", "date": "2026-01-02T03:04:05Z", "cold": strings.Contains(file, decode),
			"card": object{"name": "NVIDIA H200", "driver": "1.2", "uuid": "GPU-" + file}, "valid": true, "baseline": object{"watts": 500},
			"null": compared("invented: (copy)", 1.001), "variants": append(list, compared("zeros", 0.7)),
			"products": []any{object{"problem": object{"m": 16, "n": 16, "k": 16, "type": "bf16", "streaming": false}, "count": 1}},
		}
	}
	return files
}

func writeFrontier(t *testing.T, files map[string]any) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, v := range files {
		data, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestFrontier checks that points of several files are sorted, and that the best is chosen by measured perplexity and
// not by the budget.
func TestFrontier(t *testing.T) {
	f, err := loadFrontier(writeFrontier(t, inventedFrontier()))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, p := range f.points {
		order = append(order, p.Name)
	}
	want := []string{"round-0.1", "round-0.5", "decode-round-0.1", "grid-0.1", "grid-0.5", "full-0.1", "full-0.5", "decode-full-0.1"}
	if !slices.Equal(order, want) {
		t.Errorf("points in the order %v, want %v", order, want)
	}
	for _, c := range []struct {
		workload       string
		rise           float64
		all, roundGrid string
	}{
		{stationary, 0.1, "full-0.1", "grid-0.5"},
		{stationary, 0.5, "full-0.1", "round-0.5"},
		{stationary, 1.2, "full-0.5", "round-0.5"},
		{stationary, -0.01, "grid-0.1", "grid-0.1"},
		{decode, 0.1, "decode-round-0.1", "decode-round-0.1"},
		{decode, 0.2, "decode-full-0.1", "decode-round-0.1"},
		{decode, 0.01, "", ""},
	} {
		if have := nameOf(f.best(f.of(c.workload), c.rise)); have != c.all {
			t.Errorf("%s within %v %%: %q, want %q", c.workload, c.rise, have, c.all)
		}
		if have := nameOf(f.best(f.of(c.workload), c.rise, "round", "grid")); have != c.roundGrid {
			t.Errorf("%s within %v %%, round and grid: %q, want %q", c.workload, c.rise, have, c.roundGrid)
		}
	}
	page := string(f.page())
	for _, text := range []string{
		"| prefill, stationary | 0.1 % | −7.00 % ± 0.20 (grid-0.5, +0.090 %) | −10.10 % ± 0.20 (full-0.1, +0.080 %) |\n",
		"| prefill, stationary | 1.2 % | −8.00 % ± 0.20 (round-0.5, +0.450 %) | −12.00 % ± 0.20 (full-0.5, +0.600 %) |\n",
		"| decode | 0.1 % | −9.00 % ± 0.20 (decode-round-0.1, +0.050 %) | −9.00 % ± 0.20 (decode-round-0.1, +0.050 %) |\n",
		"| trellis + compensated + pruned | full-0.5 | 0.5 % | **+0.600 %** (+0.580 to +0.620) | −5.00 % | −12.00 % ± 0.20 | – | −12.00 % | −22.56 % | 60 s |\n",
		"| prefill, stationary, run 1 | 1.2 % | −8.00 % ± 0.20 (round-0.5) | −12.00 % ± 0.20 (full-0.5) | 1.50 ± 0.05 |\n",
		"| decode, run 1 | frontier-decode | H200-8a02 | 1.2, 2026-01-02 03:04 | 1.0010 ± 0.0020 | −30.00 % ± 0.20 | 500 W | 500 W | valid |\n",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%s", text, page)
		}
	}
	if strings.Contains(page, "streaming") || strings.Contains(page, "†") {
		t.Error("the page speaks of weights streaming, or of an invalid run, which there is not")
	}
}

func nameOf(r *frontierReading) string {
	if r == nil {
		return ""
	}
	return r.point.Name
}

// TestFrontierRuns checks that a valid run counts before others if several runs have a point, and that readings of an invalid run
// are marked everywhere.
func TestFrontierRuns(t *testing.T) {
	files := inventedFrontier()
	first := object(t, files["frontier-stationary-1.json"])
	first["valid"], first["invalid"] = false, []string{"the copy differs"}
	again := object(t, inventedFrontier()["frontier-stationary-1.json"])
	again["variants"] = again["variants"].([]any)[1:2] // full-0.1
	list(t, again["variants"])[0]["relative_energy"] = 0.905
	files["frontier-stationary-3.json"] = again
	f, err := loadFrontier(writeFrontier(t, files))
	if err != nil {
		t.Fatal(err)
	}
	page := string(f.page())
	for _, text := range []string{
		"| prefill, stationary | 0.1 % | −7.00 % ± 0.20 (grid-0.5, +0.090 %) | −9.50 % ± 0.20 (full-0.1, +0.080 %) |\n",
		"| prefill, stationary | 0.5 % | −8.00 % ± 0.20 † (round-0.5, +0.450 %) | −9.50 % ± 0.20 (full-0.1, +0.080 %) |",
		"| full-0.1 | 0.1 % | +0.080 % (+0.060 to +0.100) | −5.00 % | −10.10 % ± 0.20 † | – | −9.50 % ± 0.20 |",
		"**invalid**: the copy differs",
		"One model was measured in both run 1 and run 3. Between the runs, its energy differs by 0.60 percentage points",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%s", text, page)
		}
	}
	if strings.Contains(page, "−9.50 % ± 0.20 †") || strings.Contains(page, "−7.00 % ± 0.20 †") {
		t.Error("readings of valid runs are marked")
	}
}

// TestFrontierStreaming checks points that are measured in the streaming role too, all or some of them.
func TestFrontierStreaming(t *testing.T) {
	files := inventedFrontier()
	other := object(t, files["frontier-stationary-2.json"])
	object(t, list(t, other["products"])[0]["problem"])["streaming"] = true
	files["frontier-streaming.json"] = other
	files["frontier-stationary-2.json"] = inventedFrontier()["frontier-stationary-2.json"]
	f, err := loadFrontier(writeFrontier(t, files))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\|[^|]*\| (round|grid|full)-[0-9.]+ \|.*\| ([^|]*) \|[^|]*\|[^|]*\| 60 s \|$`).FindAllStringSubmatch(string(f.page()), -1)
	prefill := slices.DeleteFunc(slices.Clone(f.points), func(p *frontierPoint) bool { return p.Workload == decode })
	if len(rows) != len(prefill) {
		t.Fatalf("%d rows of %d points", len(rows), len(prefill))
	}
	for _, row := range rows {
		if (row[1] == "grid") != strings.Contains(row[2], "±") {
			t.Errorf("%s, streaming: %s", row[1], row[2])
		}
	}
}

// object and list are parts of invented files, for tests to change.
func object(t *testing.T, v any) map[string]any {
	t.Helper()
	o, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%v is no object", v)
	}
	return o
}

func list(t *testing.T, v any) (objects []map[string]any) {
	t.Helper()
	for _, e := range v.([]any) {
		objects = append(objects, object(t, e))
	}
	return objects
}

// TestFrontierRefuses checks that files that do not fit together, or are not precise enough, are errors.
func TestFrontierRefuses(t *testing.T) {
	const plans, losses, measured, decoded = "frontier-plans.json", "frontier-loss.json", "frontier-stationary-1.json", "frontier-decode.json"
	for want, change := range map[string]func(files map[string]any){
		"no such file":                             func(f map[string]any) { delete(f, losses) },
		"full-0.5 has no loss":                     func(f map[string]any) { delete(object(t, object(t, f[losses])["converted"]), "full-0.5") },
		"full-0.5 was planned, and no":             func(f map[string]any) { drop(t, f, measured, "variants") },
		"decode-round-0.1 was planned, and no":     func(f map[string]any) { delete(f, decoded) },
		"has full-0.5, of which frontier-plans":    func(f map[string]any) { f[plans] = f[plans].([]any)[1:] },
		"has full-0.1, of which frontier-plans":    func(f map[string]any) { list(t, object(t, f[decoded])["variants"])[0]["name"] = "full-0.1:" },
		"has grid-0.7, of which frontier-plans":    func(f map[string]any) { list(t, object(t, f[measured])["variants"])[0]["name"] = "grid-0.7:" },
		"not that of workload \"prefill\" and 1 %": func(f map[string]any) { list(t, f[plans])[0]["max_loss_percent"] = 1 },
		"not that of workload \"decode\"":          func(f map[string]any) { list(t, f[plans])[0]["workload"] = decode },
		"strategy \"magic\" is not among":          func(f map[string]any) { list(t, f[plans])[0]["name"] = "magic-0.5" },
		"is there twice":                           func(f map[string]any) { f[plans] = append(f[plans].([]any), f[plans].([]any)[0]) },
		"lacks its passes or its prediction":       func(f map[string]any) { delete(list(t, f[plans])[0], "predicted") },
		"frontier-stationary-1.json: full-0.5 is there twice": func(f map[string]any) {
			o := object(t, f[measured])
			o["variants"] = append(o["variants"].([]any), o["variants"].([]any)[0])
		},
		"is not valid and does not say why":   func(f map[string]any) { object(t, f[measured])["valid"] = false },
		"good to ±0.51 % only":                func(f map[string]any) { interval(t, f, measured, []float64{0.9949, 1.0051}) },
		"null comparison has no interval":     func(f map[string]any) { interval(t, f, measured, nil) },
		"weights cold: false":                 func(f map[string]any) { object(t, f[decoded])["cold"] = false },
		"streaming: false, which is another":  func(f map[string]any) { f["frontier-streaming.json"] = f[measured] },
		"full-0.5 has no time or no interval": func(f map[string]any) { delete(list(t, object(t, f[measured])["variants"])[0], "interval") },
		"is not what measure prints":          func(f map[string]any) { object(t, f[measured])["simulated"] = true },
	} {
		files := inventedFrontier()
		change(files)
		_, err := loadFrontier(writeFrontier(t, files))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said, but: %v", want, err)
		}
	}
	files := inventedFrontier()
	interval(t, files, measured, []float64{0.9951, 1.0049})
	if _, err := loadFrontier(writeFrontier(t, files)); err != nil {
		t.Errorf("a null comparison good to ±0.49 %%: %v", err)
	}
}

// drop removes the first element of a list.
func drop(t *testing.T, files map[string]any, file, key string) {
	o := object(t, files[file])
	o[key] = o[key].([]any)[1:]
}

func interval(t *testing.T, files map[string]any, file string, v []float64) {
	object(t, object(t, files[file])["null"])["interval"] = v
}
