package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// sparsities returns a job of n points: weights of rising sparsity.
func sparsities(s Setup, n int) Job {
	x, w := pattern.MustParse("normal(0,1)"), pattern.MustParse("normal(0,0.02)")
	job := Job{Setup: s, Baseline: Point{"baseline", 0, x, w, 1}}
	for i := range n {
		share := float64(i) / float64(max(1, n-1))
		step, err := w.With("sparse(" + strings.TrimSpace(string(must(json.Marshal(share)))) + ")")
		if err != nil {
			panic(err)
		}
		job.Points = append(job.Points, Point{"6a", share, x, step, 1})
	}
	return job
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func small(t arith.Type) Setup {
	return Setup{Type: t, M: 32, N: 48, K: 64, Change: Weights}
}

func simulated() measure.Machine { return measure.Simulated(power.DefaultSim()) }

// names returns the names of the readings of a setup in a folder, in order.
func names(t *testing.T, folder string, s Setup) (list []string) {
	t.Helper()
	series, err := Load(filepath.Join(folder, s.file()))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range series.Sessions {
		for _, p := range session.Points[1:] {
			list = append(list, p.Name())
		}
	}
	return list
}

func allNames(w Job) (list []string) {
	for _, p := range w.all() {
		list = append(list, p.Name())
	}
	return list
}

// TestRun measures a series and loads it again. The results have the planted effect of the simulated card: zeros take less
// energy.
func TestRun(t *testing.T) {
	folder, job := filepath.Join(t.TempDir(), "new"), sparsities(small(arith.BF16), 5)
	var seen []Progress
	o := Options{Progress: func(p Progress) { seen = append(seen, p) }}
	if err := Run(t.Context(), simulated(), folder, []Job{job}, o); err != nil {
		t.Fatal(err)
	}
	if have, want := names(t, folder, job.Setup), allNames(job); !slices.Equal(have, want) {
		t.Errorf("measured %q, want %q", have, want)
	}
	for i, p := range seen {
		if p.Done != i+1 || p.Total != 7 || p.Setup != job.Setup || (p.Left > 0) != (p.Done < p.Total) {
			t.Errorf("progress %d: %+v", i, p)
		}
	}
	if len(seen) != 7 {
		t.Errorf("progress of %d readings", len(seen))
	}
	series, err := Load(filepath.Join(folder, job.Setup.file()))
	if err != nil {
		t.Fatal(err)
	}
	if err := series.Check(); err != nil {
		t.Error(err)
	}
	energy := map[float64]float64{}
	for _, r := range series.Results() {
		if r.Readings != 1 || !(r.Watts > 0 && r.Seconds > 0 && r.Clock > 0) || math.Abs(r.Joules/r.Watts/r.Seconds-1) > 1e-9 {
			t.Errorf("%+v", r)
		}
		if r.Experiment == "6a" {
			energy[r.At] = r.Relative
		}
	}
	if !(math.Abs(energy[0]-1) < 0.01 && energy[1] < 0.8) {
		t.Errorf("energy %v by sparsity: want 1 at 0, and little at 1", energy)
	}
	left, err := filepath.Glob(filepath.Join(folder, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	// The same again has nothing to do.
	m := simulated()
	if err := Run(t.Context(), m, folder, []Job{job}, Options{}); err != nil || m.Clock().Now() > 0 {
		t.Errorf("a finished run: error %v, used the card for %v", err, m.Clock().Now())
	}
}

// TestResume interrupts a run at every reading, and continues with the leftovers of a killed process: the series has all points
// once, in the given order.
func TestResume(t *testing.T) {
	job := sparsities(small(arith.BF16), 4)
	for stop := range 7 {
		folder := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		o := Options{Progress: func(Progress) {
			if n++; n == stop {
				cancel()
			}
		}}
		if stop == 0 {
			cancel()
		}
		err := Run(ctx, simulated(), folder, []Job{job}, o)
		if !errors.Is(err, context.Canceled) && stop < 6 {
			t.Errorf("broken off at %d: %v", stop, err)
		}
		if have := names(t, folder, job.Setup); len(have) != stop && stop < 7 {
			t.Errorf("broken off at %d: %q are kept", stop, have)
		}
		for _, left := range []string{".lock", extension + "123"} {
			if err := os.WriteFile(filepath.Join(folder, "."+job.Setup.String()+left), []byte("{"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := Run(t.Context(), simulated(), folder, []Job{job}, Options{}); err != nil {
			t.Errorf("taken up at %d: %v", stop, err)
		}
		if _, err := os.Stat(filepath.Join(folder, "."+job.Setup.String()+".lock")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("taken up at %d: the lock stays behind: %v", stop, err)
		}
		if have, want := names(t, folder, job.Setup), allNames(job); !slices.Equal(have, want) {
			t.Errorf("taken up at %d: %q, want %q", stop, have, want)
		}
		cancel()
	}
}

// TestResumeOlder: a folder of a build that did not record the card's id is continued, and then continued again with the id.
func TestResumeOlder(t *testing.T) {
	folder, jobs := t.TempDir(), []Job{sparsities(small(arith.BF16), 1), sparsities(small(arith.BF16), 2), sparsities(small(arith.BF16), 3)}
	path := filepath.Join(folder, jobs[0].Setup.file())
	for i, job := range jobs {
		if err := Run(t.Context(), simulated(), folder, []Job{job}, Options{}); err != nil {
			t.Fatalf("run %d: %v", i+1, err)
		}
		data := string(must(os.ReadFile(path)))
		if i == 0 { // the simulated card has no UUID
			data = strings.Replace(data, `"name": "simulated card"`, `"name": "simulated card", "uuid": "GPU-1"`, 1)
			if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if has := strings.Contains(data, `"id": "GPU-`); has != (i > 0) || !strings.Contains(data, `"uuid": "GPU-1"`) {
			t.Errorf("run %d: has the id: %v", i+1, has)
		}
	}
	series, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(series.Sessions); n != len(jobs) {
		t.Errorf("%d sessions of %d runs", n, len(jobs))
	}
}

// TestRounds: the second reading of any point comes after the first of all, over all setups, and
// also where the first round was made before.
func TestRounds(t *testing.T) {
	for _, before := range []int{0, 1} {
		folder := t.TempDir()
		jobs := []Job{sparsities(small(arith.BF16), 2), sparsities(small(arith.FP16), 3)}
		if before > 0 {
			if err := Run(t.Context(), simulated(), folder, jobs, Options{Rounds: before}); err != nil {
				t.Fatal(err)
			}
		}
		var order []string
		again := power.DefaultSim()
		again.Seed = 1
		o := Options{Rounds: 2, Progress: func(p Progress) {
			order = append(order, p.Setup.Type.String()+" "+p.Result.Load)
			if p.Total != 18 || p.Done != len(order)+9*before {
				t.Errorf("progress %+v", p)
			}
		}}
		if err := Run(t.Context(), measure.Simulated(again), folder, jobs, o); err != nil {
			t.Fatal(err)
		}
		var round []string
		for _, w := range jobs {
			for _, name := range allNames(w) {
				round = append(round, w.Setup.Type.String()+" "+name)
			}
		}
		if want := slices.Repeat(round, 2-before); !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
		for _, w := range jobs {
			s, err := Load(filepath.Join(folder, w.Setup.file()))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range s.Results() {
				if r.Readings != 2 || !(r.HalfWidth > 0 && r.HalfWidth < 0.1) {
					t.Errorf("%v: %d readings, ±%v", r.Name(), r.Readings, r.HalfWidth)
				}
			}
		}
	}
}

// TestTime: a run whose time is over ends with a reading of the baseline, and goes on later.
func TestTime(t *testing.T) {
	folder, job := t.TempDir(), sparsities(small(arith.BF16), 8)
	o := Options{Time: 15 * time.Second, Every: 2}
	runs := 0
	for ; runs < 20; runs++ {
		err := Run(t.Context(), simulated(), folder, []Job{job}, o)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrTime) {
			t.Fatal(err)
		}
		if s, err := Load(filepath.Join(folder, job.Setup.file())); err == nil {
			readings := s.Sessions[len(s.Sessions)-1].Readings
			if !readings[len(readings)-1].Baseline {
				t.Errorf("run %d ends with %q", runs, readings[len(readings)-1].Load)
			}
		}
	}
	if runs < 2 || runs == 20 {
		t.Errorf("%d runs: this test tests nothing", runs)
	}
	if have, want := names(t, folder, job.Setup), allNames(job); !slices.Equal(have, want) {
		t.Errorf("measured %q, want %q", have, want)
	}
}

// TestTimeEnough: a run that ends after its time, but with all points, is short of nothing.
func TestTimeEnough(t *testing.T) {
	jobs := []Job{sparsities(small(arith.BF16), 1)}
	if err := Run(t.Context(), simulated(), t.TempDir(), jobs, Options{Time: 1}); err != nil {
		t.Error(err)
	}
}

// TestOneSetupFails: the others are measured all the same, and the error names the point.
func TestOneSetupFails(t *testing.T) {
	folder := t.TempDir()
	bad, good := sparsities(small(arith.BF16), 2), sparsities(small(arith.FP16), 2)
	bad.Points[1].W = pattern.MustParse("tensor(nowhere.safetensors:w)")
	err := Run(t.Context(), simulated(), folder, []Job{bad, good}, Options{})
	if err == nil || !strings.Contains(err.Error(), "bf16-32x48x64-stationary: 6a at 1: w: ") {
		t.Errorf("error %v", err)
	}
	if have, want := names(t, folder, good.Setup), allNames(good); !slices.Equal(have, want) {
		t.Errorf("measured %q, want %q", have, want)
	}
}

// TestLock: one process at a time measures a setup; others may be measured beside it.
func TestLock(t *testing.T) {
	folder := t.TempDir()
	a, b := sparsities(small(arith.BF16), 1), sparsities(small(arith.FP16), 1)
	tried := false
	o := Options{Progress: func(Progress) {
		if tried {
			return
		}
		tried = true
		if err := Run(t.Context(), simulated(), folder, []Job{a}, Options{}); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("the same setup: %v", err)
		}
		if err := Run(t.Context(), simulated(), folder, []Job{b}, Options{}); err != nil {
			t.Errorf("another setup: %v", err)
		}
	}}
	if err := Run(t.Context(), simulated(), folder, []Job{a}, o); err != nil || !tried {
		t.Fatal(err)
	}
}

// TestOtherRun: a run does not continue a folder of another card or baseline.
func TestOtherRun(t *testing.T) {
	folder, job := t.TempDir(), sparsities(small(arith.BF16), 1)
	if err := Run(t.Context(), simulated(), folder, []Job{job}, Options{}); err != nil {
		t.Fatal(err)
	}
	other := job
	other.Baseline.Seed, other.Points = 2, nil
	if err := Run(t.Context(), simulated(), folder, []Job{other}, Options{}); err == nil || !strings.Contains(err.Error(), "another baseline") {
		t.Errorf("another baseline: %v", err)
	}
	path := filepath.Join(folder, job.Setup.file())
	s := must(Load(path))
	s.Sessions[0].Simulated, s.Sessions[0].Card.Name = false, "NVIDIA A100"
	if err := s.save(folder); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), simulated(), folder, []Job{job}, Options{}); err == nil || !strings.Contains(err.Error(), "measured on NVIDIA A100, and this is a simulated card") {
		t.Errorf("another card: %v", err)
	}
}

func TestTwoWorksOfASetup(t *testing.T) {
	job := sparsities(small(arith.BF16), 1)
	if err := Run(t.Context(), simulated(), t.TempDir(), []Job{job, job}, Options{}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("error %v", err)
	}
}

// TestForeignFolder: a folder of other files is refused, and nothing is written there. Leftovers of a run before its first
// reading are no such files.
func TestForeignFolder(t *testing.T) {
	job, folder := sparsities(small(arith.BF16), 1), t.TempDir()
	notes := filepath.Join(folder, "notes.txt")
	if err := os.WriteFile(notes, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), simulated(), folder, []Job{job}, Options{}); err == nil || !strings.Contains(err.Error(), "other files, such as notes.txt") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
	if err := os.Rename(notes, filepath.Join(folder, ".lock")); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), simulated(), folder, []Job{job}, Options{}); err != nil {
		t.Error(err)
	}
	if err := os.Rename(filepath.Join(folder, ".lock"), notes); err != nil { // beside a series it may lie
		t.Fatal(err)
	}
	if err := Run(t.Context(), simulated(), folder, []Job{job}, Options{}); err != nil {
		t.Error(err)
	}
}

func TestWorkValidate(t *testing.T) {
	for want, change := range map[string]func(*Job){
		"":                              func(*Job) {},
		"two points have this name":     func(w *Job) { w.Points[1].At = w.Points[0].At },
		"which is kept for null points": func(w *Job) { w.Points[0].Experiment = Null },
		"must be a finite number":       func(w *Job) { w.Points[0].At = math.Inf(1) },
		"both operands need a pattern":  func(w *Job) { w.Points[0].W = pattern.Pattern{} },
		"x must be the baseline's":      func(w *Job) { w.Points[0].X = w.Points[0].W },
		`change "none"`:                 func(w *Job) { w.Setup.Change = "none" },
		"at least 1":                    func(w *Job) { w.Setup.K = 0 },
		"no such role":                  func(w *Job) { w.Setup.Role = 9 },
	} {
		w := sparsities(small(arith.BF16), 3)
		change(&w)
		err := w.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if err != nil {
			if ran := Run(t.Context(), simulated(), t.TempDir(), []Job{w}, Options{}); ran == nil || ran.Error() != err.Error() {
				t.Errorf("%q: the run says %v", want, ran)
			}
		}
	}
}

func TestSetupNames(t *testing.T) {
	cube := func(n int, s Setup) Setup { s.M, s.N, s.K = n, n, n; return s }
	for want, s := range map[string]Setup{
		"bf16-8192-stationary":              cube(8192, Setup{Type: arith.BF16, Change: Weights}),
		"fp8-8192-streaming":                cube(8192, Setup{Type: arith.FP8, Change: Weights, Role: cost.Streaming}),
		"fp16-2048-both":                    cube(2048, Setup{Type: arith.FP16, Change: Both}),
		"fp16-cuda-2048-both-streaming":     cube(2048, Setup{Type: arith.FP16CUDA, Change: Both, Role: cost.Streaming}),
		"bf16-16x8192x8192-stationary-cold": {Type: arith.BF16, M: 16, N: 8192, K: 8192, Change: Weights, Cold: true},
	} {
		if s.String() != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
}
