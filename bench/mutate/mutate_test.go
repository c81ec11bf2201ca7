package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const planted = `package p

import (
	"fmt"
	"math"
	"strconv"
)

const most = 4

func Sum(rows, cols int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n := rows + most*cols
	if n <= -1 || cols == 5.0 {
		return n, fmt.Errorf("%d of %d", n+1, 7)
	}
	return area(rows, cols), nil
}

func pair(err error) (n int, list []int, none struct{}, _ error) { return 0, nil, struct{}{}, err }

type options struct {
	Workers, Size int
	Values        map[string]float64
	First         float64
}

func parsed(s string) options {
	v, _ := strconv.ParseFloat(s, 64)
	return options{Workers: 1, Size: 32, Values: make(map[string]float64, 8), First: v}
}

func infinite(v float64) bool { return v == math.Inf(1) || math.IsInf(v, 1) || math.IsInf(v, 0) }

func area(a, b int) int { return a - b + len("x"+"y") }
`

// TestMutants: each kind of change is found, and none in messages, beside errors, in joined texts and of constants without effect.
func TestMutants(t *testing.T) {
	list, err := inFile("p", "p/p.go", []byte(planted))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, m := range list {
		have = append(have, m.Kind+": "+m.Was+" → "+m.Becomes)
		if planted[m.offset:m.offset+len(m.Was)] != m.Was {
			t.Errorf("%s lies elsewhere", m)
		}
	}
	want := []string{
		"constant: 4 → 5",
		"error: err != nil → err != nil && false",
		"arithmetic: + → -", "arithmetic: * → /",
		"comparison: || → &&", "comparison: <= → <", "comparison: <= → >", "constant: 1 → 2", "comparison: == → !=", "constant: 5.0 → (5.0 * 1.25)",
		"axis: rows, cols → cols, rows",
		"constant: 32 → 33",
		"comparison: || → &&", "comparison: || → &&", "comparison: == → !=", "constant: 0 → 1",
		"arithmetic: + → -", "arithmetic: - → +",
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
}

// TestReasonsHaveSurvivors: every reason in equivalent.json belongs to a mutant that survives in a record.
func TestReasonsHaveSurvivors(t *testing.T) {
	const folder = "../results/mutants/"
	var explained []struct {
		mutant
		Reason string
	}
	js, err := os.ReadFile(folder + "equivalent.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(js, &explained); err != nil {
		t.Fatal(err)
	}
	var survivors []mutant
	for name := range recordedShares {
		r, err := readRecord(folder + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Mutants {
			if !o.Killed {
				survivors = append(survivors, o.mutant)
			}
		}
	}
	for _, x := range explained {
		same := func(m mutant) bool {
			return m.File == x.File && m.Text == x.Text && m.Was == x.Was && m.Becomes == x.Becomes
		}
		if x.Reason == "" || !slices.ContainsFunc(survivors, same) {
			t.Errorf("%s has no reason, or survives in no record: remove it from equivalent.json", x.mutant)
		}
	}
}

// recordedShares are the least shares of killed mutants in the records. The aim is 0.85 in each group. The draw of transform before the
// newest one missed it; five of its seven survivors are equivalent.
var recordedShares = map[string]float64{"weights": 0.85, "transform": 0.85, "transform-before": 0.8, "cost": 0.85, "power": 0.85}

// TestRecordedShares: of the mutants that a record has drawn at random, tests kill at least this share.
func TestRecordedShares(t *testing.T) {
	for group, least := range recordedShares {
		r, err := readRecord("../results/mutants/" + group + ".json")
		if err != nil {
			t.Fatal(err)
		}
		killed := 0
		for _, o := range r.Mutants {
			if o.Killed {
				killed++
			}
		}
		if n := len(r.Mutants); n < 15 || float64(killed) < least*float64(n) {
			t.Errorf("%s: %d of %d mutants are killed, less than %v: write tests, and draw again with another seed", group, killed, n, least)
		}
	}
}

// TestTry: a mutant that a test fails on is killed, another survives, a third does not compile, and the folder does not change.
func TestTry(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module some times")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"p/p.go": planted,
		"p/p_test.go": `package p
import "testing"
func TestArea(t *testing.T) { if area(5, 3) != 4 { t.Error("wrong") } }
`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	list, err := mutants("p")
	if err != nil {
		t.Fatal(err)
	}
	r := &record{Group: "p", Possible: len(list)}
	chosen := []mutant{list[0], list[9], list[slices.IndexFunc(list, func(m mutant) bool { return m.Was == "-" })]}
	of, err := newTester(t.Context(), t.TempDir(), chosen, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := []mutantState{mutantAlone, mutantInvalid, mutantSwitched}; !slices.Equal(of.state, want) {
		t.Errorf("states %v, want %v", of.state, want)
	}
	for i, m := range chosen {
		o, err := of.try(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		if o == nil {
			r.NotCompiled = append(r.NotCompiled, m)
		} else {
			r.Mutants = append(r.Mutants, *o)
		}
	}
	if len(r.NotCompiled) != 1 || r.NotCompiled[0].Was != "5.0" || len(r.Mutants) != 2 || r.Mutants[0].Killed || r.Mutants[1].By != "p -short: TestArea" {
		t.Errorf("%+v", r)
	}
	path := filepath.Join(dir, "records", "p.json")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	again, err := readRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "p: 1 of 2 mutants killed (of 18 possible; seed 0)"; again.summary() != want || !again.Mutants[1].same(r.Mutants[1].mutant) {
		t.Errorf("%s, want %s", again.summary(), want)
	}
	if text, err := os.ReadFile("p/p.go"); err != nil || string(text) != planted {
		t.Errorf("the file became %q (%v)", text, err)
	}
}
