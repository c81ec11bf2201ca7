package bench

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tortureRecord has the fields of a record of bench/torture that the page uses.
type tortureRecord struct {
	Command        string
	Seconds        float64
	Trials, Faults int
	Kinds          map[string]int `json:"faults_by_kind"`
	Scenarios      map[string]int `json:"trials_by_scenario"`
	Failures       []any
}

func reliabilityClaims(e *evidence) []claim {
	var r tortureRecord
	read(e.T, "results/torture/scenarios.json", &r)
	if len(r.Failures) > 0 {
		e.Errorf("%d failures are recorded, and the page says that there is none", len(r.Failures))
	}
	list := []claim{says("injected {} faults in\n{} trials of {} scenarios within {} minutes, {} faults a second",
		fmt.Sprint(r.Faults), fmt.Sprint(r.Trials), fmt.Sprint(len(r.Scenarios)), fmt.Sprintf("%.0f", r.Seconds/60), fmt.Sprintf("%.1f", float64(r.Faults)/r.Seconds))}
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		list = append(list, says("| "+kind+" | {} |", fmt.Sprint(r.Kinds[kind])))
	}
	return slices.Concat(list, fuzzClaims(e), mutantClaims(e), bytesClaims(e))
}

// fuzzClaims are the claims about the record of bench/fuzz.
func fuzzClaims(e *evidence) []claim {
	var r struct {
		Targets map[string]struct {
			Seconds    float64
			Executions int64
			Processor  float64 `json:"processor_seconds"`
			Crashes    []any
		}
	}
	read(e.T, "results/fuzz/targets.json", &r)
	least, most, all, slowest, slow := math.Inf(1), 0., int64(0), math.Inf(1), 0
	for name, t := range r.Targets {
		least, most, all = min(least, t.Processor), max(most, t.Processor), all+t.Executions
		if len(t.Crashes) > 0 {
			e.Errorf("%s: a failure is recorded, and the page says that there is none", name)
		}
		rate := float64(t.Executions) / t.Processor
		if !noReader[name] {
			slowest = min(slowest, rate)
		}
		if rate < 1000 {
			slow++
		}
	}
	return []claim{says("targets.json), {} targets ran for {} to {} minutes of processor time each, {} million executions in all", fmt.Sprint(len(r.Targets)),
		fmt.Sprintf("%.1f", least/60), fmt.Sprintf("%.1f", most/60), fmt.Sprintf("%.1f", float64(all)/1e6)),
		says("The slowest reader's target runs {} times in a second of processor time.\nOnly {} target runs fewer than 1000 times", fmt.Sprintf("%.0f", slowest), fmt.Sprint(slow))}
}

// noReader are targets that compare two computations; they read nothing foreign.
var noReader = map[string]bool{"gemm/sgemm.FuzzMul": true, "gemm/sgemm.FuzzFMA": true, "cost.FuzzCounters": true, "transform/pass.FuzzRoundF32": true}

// bytesClaims are the claims about the record of bench/bytes.sh.
func bytesClaims(e *evidence) (list []claim) {
	var r map[string]struct {
		Plan      string
		Equal     []string
		OtherPlan []string `json:"other_plan"`
	}
	read(e.T, "results/bytes/variants.json", &r)
	frozen, err := os.ReadFile("../testdata/frozen.txt")
	if err != nil {
		e.Fatal(err)
	}
	weights, plans := map[string]int{}, map[string]int{}
	for name, c := range r {
		for _, v := range slices.Concat(c.Equal, c.OtherPlan) {
			weights[v]++
		}
		if strings.Contains(string(frozen), c.Plan+"  plan: "+name+"\n") {
			for _, v := range c.Equal {
				plans[v]++
			}
		}
	}
	list = []claim{says("for each of {} conversions,", fmt.Sprint(len(r)))}
	for _, v := range slices.Sorted(maps.Keys(weights)) {
		list = append(list, says("| "+v+" | {} | {} |", fmt.Sprint(weights[v]), fmt.Sprint(plans[v])))
	}
	return list
}

// mutantClaims are the claims about the records of bench/mutate.
func mutantClaims(e *evidence) (list []claim) {
	counted := func(name string) (possible, all, killed int) {
		var r struct {
			Possible int
			Mutants  []struct{ Killed bool }
		}
		read(e.T, "results/mutants/"+name+".json", &r)
		for _, m := range r.Mutants {
			if m.Killed {
				killed++
			}
		}
		return r.Possible, len(r.Mutants), killed
	}
	for _, group := range []string{"weights", "transform", "cost", "power"} {
		possible, all, killed := counted(group)
		list = append(list, says("| `"+group+"` | {} | {} | {} | {} |", fmt.Sprint(possible), fmt.Sprint(all), fmt.Sprint(killed), fmt.Sprint(all-killed)))
	}
	_, all, killed := counted("transform-before")
	return append(list, says("In the [previous sample](../bench/results/mutants/transform-before.json), tests killed {} of {} mutants of `transform`.", fmt.Sprint(killed), fmt.Sprint(all)))
}

// TestReliabilityNamesTests: every test that docs/reliability.md names exists.
func TestReliabilityNamesTests(t *testing.T) {
	page, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	err = filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(names) < 10 {
		t.Errorf("the page names %d tests", len(names))
	}
	for _, name := range names {
		if !strings.Contains(code.String(), "\nfunc "+name[1]+"(") {
			t.Errorf("docs/reliability.md names %s, and there is no such test", name[1])
		}
	}
}
