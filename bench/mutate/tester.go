package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tester runs mutants.
type tester struct {
	short    bool // only the short tests of a mutant's package
	laws     []string
	folder   string // for programs
	overlay  string // with the switches of all mutants in the list
	list     []mutant
	state    []mutantState
	programs map[string]string // test programs, by package
	usual    map[suite]baseline
}

// suite is a run of tests.
type suite struct {
	pkg   string
	short bool
}

func (s suite) String() string {
	if s.short {
		return s.pkg + " -short"
	}
	return s.pkg
}

// baseline is a run of a suite without a mutant.
type baseline struct {
	took    time.Duration
	reached map[int]bool // the mutants whose code ran
}

// newTester compiles nothing yet. The folder must be empty.
func newTester(ctx context.Context, folder string, list []mutant, laws []string, short bool) (*tester, error) {
	t := &tester{short: short, laws: laws, folder: folder, list: list, programs: map[string]string{}, usual: map[suite]baseline{}}
	var err error
	t.overlay, t.state, err = withSwitches(ctx, folder, list)
	return t, err
}

// suites are the tests of a mutant's package, then those of other packages that test its behaviour.
func (t *tester) suites(m mutant) []suite {
	list := []suite{{m.Package, true}}
	if t.short {
		return list
	}
	list = append(list, suite{m.Package, false})
	for _, pkg := range t.laws {
		if pkg != m.Package {
			list = append(list, suite{pkg, true})
		}
	}
	return list
}

// try runs tests on the mutant of a place in the list until one fails. A suite that does not run the mutant's code is left out. The outcome
// is nil if it does not compile.
func (t *tester) try(ctx context.Context, i int) (*outcome, error) {
	m := t.list[i]
	if t.state[i] == mutantInvalid {
		return nil, nil
	}
	begin := time.Now()
	for _, s := range t.suites(m) {
		usual, err := t.baseline(ctx, s)
		if err != nil {
			return nil, err
		}
		limit := 3*usual.took + time.Minute
		var failed bool
		var how string
		switch {
		case t.state[i] == mutantAlone:
			failed, how, err = t.alone(ctx, m, s, limit)
		case usual.reached[i]:
			failed, how, err = t.run(ctx, s, strconv.Itoa(i), limit)
		}
		switch {
		case err != nil:
			return nil, err
		case how == notCompiled:
			return nil, nil
		case failed:
			return &outcome{mutant: m, Killed: true, By: s.String() + ": " + how, Seconds: time.Since(begin).Seconds()}, nil
		}
	}
	return &outcome{mutant: m, Seconds: time.Since(begin).Seconds()}, nil
}

// baseline runs a suite without a mutant, once.
func (t *tester) baseline(ctx context.Context, s suite) (baseline, error) {
	if b, ok := t.usual[s]; ok {
		return b, nil
	}
	b := baseline{reached: map[int]bool{}}
	reached := filepath.Join(t.folder, fmt.Sprintf("reached%d", len(t.usual)))
	if _, err := t.program(ctx, s.pkg); err != nil {
		return b, err
	}
	begin := time.Now()
	if failed, how, err := t.run(ctx, s, "reached "+reached, 30*time.Minute); err != nil || failed {
		return b, errors.Join(err, fmt.Errorf("%s fails without a mutant: %s", s, how))
	}
	b.took = time.Since(begin)
	text, err := os.ReadFile(reached)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return b, err
	}
	for _, number := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(number)
		if err != nil {
			return b, err
		}
		b.reached[n] = true
	}
	t.usual[s] = b
	return b, nil
}

// program compiles the tests of a package with the switches, once.
func (t *tester) program(ctx context.Context, pkg string) (string, error) {
	if name, ok := t.programs[pkg]; ok {
		return name, nil
	}
	name := filepath.Join(t.folder, strings.ReplaceAll(pkg, "/", "-")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", t.overlay, "-o", name, "./"+pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the tests of %s: %w\n%s", pkg, err, out)
	}
	t.programs[pkg] = name
	return name, nil
}

// run runs a suite with a mutant, or what else the environment chooses, and says whether a test failed, and which.
func (t *tester) run(ctx context.Context, s suite, choice string, limit time.Duration) (failed bool, how string, err error) {
	program, err := t.program(ctx, s.pkg)
	if err != nil {
		return false, "", err
	}
	args := []string{"-test.failfast", "-test.timeout", limit.Round(time.Second).String()}
	if s.short {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = s.pkg, append(os.Environ(), environment+"="+choice)
	return result(ctx, cmd, limit)
}

// alone compiles and runs a suite of a mutant that has no switch.
func (t *tester) alone(ctx context.Context, m mutant, s suite, limit time.Duration) (failed bool, how string, err error) {
	folder, err := os.MkdirTemp(t.folder, "alone")
	if err != nil {
		return false, "", err
	}
	overlay, err := m.overlay(folder)
	if err != nil {
		return false, "", err
	}
	args := []string{"test", "-vet=off", "-failfast", "-count=1", "-timeout", limit.Round(time.Second).String(), "-overlay", overlay}
	if s.short {
		args = append(args, "-short")
	}
	return result(ctx, exec.CommandContext(ctx, "go", append(args, "./"+s.pkg)...), limit)
}

// overlay writes the changed file and the list that go test -overlay reads.
func (m mutant) overlay(folder string) (string, error) {
	changed, err := m.apply()
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, filepath.Base(m.File))
	if err := os.WriteFile(file, changed, 0o666); err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	js, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(folder, "overlay.json")
	return list, os.WriteFile(list, js, 0o666)
}

const notCompiled = "does not compile"

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	panicked   = regexp.MustCompile(`(?m)^(panic|fatal error): (.{0,80})`)
)

// result runs tests and says whether one failed, and which.
func result(ctx context.Context, cmd *exec.Cmd, limit time.Duration) (failed bool, how string, err error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = cmd.Run()
	if ctx.Err() != nil {
		return false, "", ctx.Err()
	}
	if err == nil {
		return false, "", nil
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return false, "", err
	}
	text := out.Bytes()
	switch {
	case bytes.Contains(text, []byte("[build failed]")) || bytes.Contains(text, []byte("[setup failed]")):
		return true, notCompiled, nil
	case bytes.Contains(text, []byte("panic: test timed out")):
		return true, "no end within " + limit.Round(time.Second).String(), nil
	}
	if names := failedTest.FindAllSubmatch(text, -1); names != nil {
		return true, string(names[len(names)-1][1]), nil
	}
	if m := panicked.FindSubmatch(text); m != nil {
		return true, string(m[0]), nil
	}
	return true, string(text[max(0, len(text)-200):]), nil
}
