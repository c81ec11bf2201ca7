package paper

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
)

const (
	recorded  = "../results/h200/reproduce"
	docs      = "../../docs"
	docFolder = "reproduce/"
)

// TestRecordedPage checks that docs/reproduce.md and its figures agree with the recorded measurements.
func TestRecordedPage(t *testing.T) {
	path := func(f File) string {
		if f.Name == "report.md" {
			return filepath.Join(docs, "reproduce.md")
		}
		return filepath.Join(docs, docFolder, f.Name)
	}
	series, err := experiment.LoadFolder(recorded)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(path(File{Name: "report.md"})); err == nil {
			t.Fatalf("docs/reproduce.md is there without the measurements that it is made of, in %s", recorded)
		}
		t.Skip("nothing is recorded yet")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range series {
		for _, session := range s.Sessions {
			if session.Simulated || session.Card.Name == "" || session.Card.Driver == "" || session.Date == "" || session.Command == "" {
				t.Errorf("%v: simulated, or card, driver, date or command are missing", s.Setup)
			}
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	files, err := Page(t.Context(), series, docFolder)
	if err != nil {
		t.Fatal(err)
	}
	if *goldenfile.Update {
		if err := os.MkdirAll(filepath.Join(docs, docFolder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		goldenfile.Same(t, path(f), f.Data)
	}

	there, err := filepath.Glob(filepath.Join(docs, docFolder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range there {
		if !slices.ContainsFunc(files, func(f File) bool { return path(f) == name }) {
			t.Errorf("%s is no figure of the page: remove it", name)
		}
	}
}

// TestRecordedContinue: a run with ten seeds goes on in the recorded folder and measures none of its points again.
func TestRecordedContinue(t *testing.T) {
	series, err := experiment.LoadFolder(recorded)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range series {
		job := Job(s.Setup, Points{Seeds: paperSeeds})
		if s.Baseline != job.Baseline {
			t.Errorf("%v: another baseline: a run would refuse to go on", s.Setup)
		}
		there := s.Results()
		for _, r := range there {
			if r.Experiment != experiment.Null && !slices.Contains(job.Points, r.Point) {
				t.Errorf("%v: %s is no point of the job", s.Setup, r.Name())
			}
		}
		if missing, nulls := s.Missing(job, 1), 2; len(missing)+len(there) != len(job.Points)+nulls {
			t.Errorf("%v: %d of %d points are missing, and %d are there", s.Setup, len(missing), len(job.Points), len(there))
		}
	}
}

// TestPage: the page describes the measurements, shows every figure, and has complete tables.
func TestPage(t *testing.T) {
	falls := func(id string, x float64) float64 { return 1 - 0.2*x/(x+100) }
	given := []*experiment.Series{series(Setups()[6], falls), series(fp16(), falls)}
	files, err := Page(t.Context(), given, "pictures/")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Page(t.Context(), []*experiment.Series{given[1], given[0]}, "pictures/")
	if err != nil {
		t.Fatal(err)
	}
	page := string(files[0].Data)
	if diff := cmp.Diff(page, string(again[0].Data)); diff != "" || files[0].Name != "report.md" {
		t.Errorf("%s depends on the order of the series:\n%s", files[0].Name, diff)
	}
	for _, f := range files[1:] {
		if !strings.Contains(page, "](pictures/"+f.Name+")") {
			t.Errorf("%s is not shown", f.Name)
		}
	}
	want := []string{
		"| fp16-2048-both | GPU-7692 | 1.2, 13.0, 700 W | 2026-11-21 | 75, 75 | 400 W at 1500 MHz |",
		"```\nmeasure it\n```",
		"### Effects at 2048³, both operands", "### Effects at 8192³, weights only, stationary",
		"| **holds** |", "| **does not hold** |", "**not measured**",
		"| fp16-2048-both | 1 | 207 | 7 |", "| all | 2 | 405 | 14 |",
		"25 % of a point's elements to zero (experiment 3b, mean (σ = 1): 64)",
	}
	for _, tk := range takeaways {
		want = append(want, "| "+tk.ID+" | "+tk.Claim+" |")
	}
	for _, text := range want {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	cells := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		if n := strings.Count(line, "|"); cells != 0 && n != cells {
			t.Errorf("a row of %d cells in a table of %d: %s", n, cells, line)
		} else {
			cells = n
		}
		if strings.Contains(line, "NaN") {
			t.Errorf("not a number: %s", line)
		}
	}
}

// TestPageDoubts: the page marks simulated series and series whose null points contradict the baseline.
func TestPageDoubts(t *testing.T) {
	s := series(fp16(), uniform)
	s.Sessions[0].Simulated = true
	for i := range s.Sessions[0].Readings {
		if r := &s.Sessions[0].Readings[i]; strings.HasPrefix(r.Load, experiment.Null) {
			r.PerExecution *= 1.1
		}
	}
	files, err := Page(t.Context(), []*experiment.Series{s}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"The card is simulated", "Not valid", "](figure-3.svg)"} {
		if !bytes.Contains(files[0].Data, []byte(text)) {
			t.Errorf("the page does not say %q", text)
		}
	}
}
