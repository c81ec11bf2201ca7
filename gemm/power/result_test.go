package power

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNamesOthersScriptAgainst looks for the documented fields, and that a result survives JSON.
func TestNamesOthersScriptAgainst(t *testing.T) {
	date := time.Date(2025, 11, 21, 10, 0, 0, 0, time.UTC)
	r := compare(t, DefaultSim(), Options{Seed: 5, Date: date, Command: "measure"}, 500, 480)
	text := marshal(t, r)
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	has := func(where any, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, ok := where.(map[string]any)[name]; !ok {
				t.Errorf("no %q in %v", name, where)
			}
		}
	}
	has(doc, "gpu", "null", "variants", "baseline", "valid", "stopped", "date", "command", "seed", "card",
		"self_test", "steady", "blocks", "dropped_windows", "smallest_effect")
	has(doc["null"], "relative_energy", "interval")
	has(doc["variants"].([]any)[0], "name", "relative_energy", "interval", "relative_time", "joules", "watts",
		"seconds", "clock_mhz", "capped", "temperature_c", "relative_edp", "relative_eds")
	if doc["date"] != "2025-11-21T10:00:00Z" {
		t.Errorf("date %v", doc["date"])
	}
	var back Result
	if err := json.Unmarshal([]byte(text), &back); err != nil {
		t.Fatal(err)
	}
	if again := marshal(t, &back); again != text {
		t.Error("reading and writing the JSON again changes it")
	}
}

func TestInvalidate(t *testing.T) {
	r := &Result{Header: Header{Valid: true}}
	r.Invalidate("output of %q holds NaN", "a")
	if r.Valid || !slices.Equal(r.Invalid, []string{`output of "a" holds NaN`}) {
		t.Errorf("%+v", r)
	}
}

func TestThrottleNames(t *testing.T) {
	got := (SoftwarePowerCap | HardwareThermal | 1<<40).Names()
	if !slices.Equal(got, []string{"software_power_cap", "hardware_thermal"}) {
		t.Errorf("%v", got)
	}
	if SoftwarePowerCap.Heat() || !SoftwareThermal.Heat() {
		t.Error("heat")
	}
}

func TestOtherProcesses(t *testing.T) {
	p := func(pids ...int) (all []Process) {
		for _, pid := range pids {
			all = append(all, Process{PID: pid})
		}
		return
	}
	for _, c := range []struct {
		all  []Process
		want int
	}{{p(), 0}, {p(7), 0}, {p(7, 8), 1}, {p(99), 0}, {p(98, 99), 2}} {
		if got := Others(c.all, 7); len(got) != c.want {
			t.Errorf("others of %v: %v", c.all, got)
		}
	}
}

// TestProgress: every stage and every window is told of, and the time of the comparison goes on.
func TestProgress(t *testing.T) {
	s := NewSim(DefaultSim())
	told := map[string]int{}
	var stages []string
	var last Event
	m, err := NewMeter(s, Options{Clock: s, Time: 30 * time.Second, Progress: func(e Event) {
		if told[e.Stage]++; told[e.Stage] == 1 {
			stages = append(stages, e.Stage)
		}
		if e.Stage != "measure" && e.Total != 0 || e.Stage == "measure" && (e.Total != int64(30*time.Second) || e.Done < last.Done || e.Done > e.Total) {
			t.Errorf("%+v after %+v", e, last)
		}
		last = e
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Compare(t.Context(), Loads{Baseline: s.Load("a", 500, 0.001), Null: s.Load("n", 500, 0.001)})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(stages, ",") != "self-test,warm-up,measure" {
		t.Errorf("stages %v", stages)
	}
	if told["self-test"] != 1 || told["warm-up"] != 1+len(r.Steady.Windows) || told["measure"] != 1+4*len(r.Blocks) || last.Done == 0 {
		t.Errorf("told %v, last %+v; %d windows and %d blocks", told, last, len(r.Steady.Windows), len(r.Blocks))
	}
}
