package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tortureRecord is what the page says of a record of bench/torture.
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
	list := []claim{says("injected {} faults in {} trials of {} scenarios within {} minutes, {} faults a second",
		fmt.Sprint(r.Faults), fmt.Sprint(r.Trials), fmt.Sprint(len(r.Scenarios)), fmt.Sprintf("%.0f", r.Seconds/60), fmt.Sprintf("%.1f", float64(r.Faults)/r.Seconds))}
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		list = append(list, says("| "+kind+" | {} |", fmt.Sprint(r.Kinds[kind])))
	}
	return list
}

// TestReliabilityNamesTests: every test that docs/reliability.md names is there.
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
