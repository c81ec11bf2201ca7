package experiment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// TestLoadRefuses: contents that no run writes are an error with the reason.
func TestLoadRefuses(t *testing.T) {
	folder, job := t.TempDir(), sparsities(small(arith.BF16), 1)
	if err := Run(t.Context(), simulated(), folder, []Job{job}, Options{}); err != nil {
		t.Fatal(err)
	}
	name := job.Setup.file()
	good := string(must(os.ReadFile(filepath.Join(folder, name))))
	for _, c := range []struct{ what, old, new, want string }{
		{"another version", `"series_version": 1`, `"series_version": 2`, "series_version is 2, but this program reads 1"},
		{"no version", `"series_version": 1,`, ``, "has no series_version"},
		{"half a file", good[len(good)/2:], "", "is no series of lowtoggle reproduce or calibrate: move the file to another folder: unexpected end"},
		{"nothing", good, "", "is no series of lowtoggle"},
		{"a list", good, "[]", "is no series of lowtoggle"},
		{"an unknown field", `"baseline"`, `"basis"`, `unknown field "basis"`},
		{"another setup", `"m": 32`, `"m": 33`, "rename it to bf16-33x48x64-stationary.json"},
		{"an impossible setup", `"m": 32`, `"m": 0`, "every dimension must be at least 1"},
		{"no such type", `"type": "bf16"`, `"type": "bf17"`, `unknown arithmetic "bf17"`},
		{"a broken pattern", `"w": "normal(0,0.02)"`, `"w": "normal(0,"`, "damaged"},
		{"the baseline changed", `"seed": 1`, `"seed": 3`, "damaged: the first point is not the baseline: move the file to another folder to measure its series again"},
		{"a point of another name", `"experiment": "6a"`, `"experiment": "6b"`, `reading of "6a at 0"`},
		{"a reading that was lost", `"load": "6a at 0"`, `"baseline": true, "load": ""`, `there is no reading of 6a at 0`},
		{"a reading of nothing", `"joules": `, `"joules": 0, "x": `, "unknown field"},
		{"no power", `"watts": `, `"watts": -`, "an energy, time or power that is not positive"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Fatalf("%s: nothing was changed", c.what)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
		if _, err := LoadFolder(filepath.Dir(path)); err == nil {
			t.Errorf("%s: the folder was read", c.what)
		}
		// Run does not continue or overwrite such a file either.
		if err := Run(t.Context(), simulated(), filepath.Dir(path), []Job{job}, Options{}); err == nil {
			t.Errorf("%s: it was gone on with", c.what)
		}
		if now := string(must(os.ReadFile(path))); now != bad {
			t.Errorf("%s: it was changed", c.what)
		}
	}
}

func TestLoadFolder(t *testing.T) {
	folder := t.TempDir()
	for _, missing := range []string{folder, filepath.Join(folder, "nowhere")} {
		if _, err := LoadFolder(missing); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: %v", missing, err)
		}
	}
	jobs := []Job{sparsities(small(arith.FP16), 1), sparsities(small(arith.BF16), 1)}
	if err := Run(t.Context(), simulated(), folder, jobs, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"report.md", ".fp8-1-both.json123"} {
		if err := os.WriteFile(filepath.Join(folder, other), []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	all, err := LoadFolder(folder)
	if err != nil || len(all) != 2 || all[0].Setup != jobs[1].Setup || all[1].Setup != jobs[0].Setup {
		t.Errorf("%v, %v", all, err)
	}
}

// TestUnwritable: a run that cannot write its readings ends at once.
func TestUnwritable(t *testing.T) {
	folder := t.TempDir()
	jobs := []Job{sparsities(small(arith.BF16), 2), sparsities(small(arith.FP16), 2)}
	taken := Options{Progress: func(Progress) { // a folder takes the file's name
		path := filepath.Join(folder, jobs[0].Setup.file())
		if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Join(path, "full"), 0o777)); err != nil {
			t.Error(err)
		}
	}}
	err := Run(t.Context(), simulated(), folder, jobs, taken)
	if !errors.Is(err, errSave) {
		t.Errorf("error %v", err)
	}
	if have := names(t, folder, jobs[1].Setup); have != nil {
		t.Errorf("it went on with %q", have)
	}
}
