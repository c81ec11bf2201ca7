package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tester runs mutants.
type tester struct {
	short    bool // only the short tests of a mutant's package
	laws     []suite
	folder   string // for programs
	overlay  string // path of the overlay with the switches of all mutants
	list     []mutant
	state    []mutantState
	programs map[string]string // test programs, by package
	usual    map[suite]baseline
}

// suite is a run of tests.
type suite struct {
	pkg   string
	short bool
	only  string // a pattern of names; empty: all tests
}

// short returns the short tests of packages.
func short(packages ...string) (list []suite) {
	for _, pkg := range packages {
		list = append(list, suite{pkg: pkg, short: true})
	}
	return list
}

func (s suite) String() string {
	if s.short {
		return s.pkg + " -short"
	}
	return s.pkg
}

// baseline has a suite's tests without a mutant, the fastest first.
type baseline []usualTest

// usualTest is a test without a mutant, run in its own process.
type usualTest struct {
	name    string
	took    time.Duration
	reached map[int]bool // the mutants whose code ran
}

// quick is the longest time of the tests that run first.
const quick = 300 * time.Millisecond

// reaching returns the names of the tests that run a mutant's code, quick tests and slow tests, and their time without the mutant.
func (b baseline) reaching(i int) (names [2][]string, took time.Duration) {
	for _, t := range b {
		if !t.reached[i] {
			continue
		}
		at := 0
		if t.took > quick {
			at = 1
		}
		names[at] = append(names[at], t.name)
		took += t.took
	}
	return names, took
}

// took returns the time of all tests.
func (b baseline) took() (sum time.Duration) {
	for _, t := range b {
		sum += t.took
	}
	return sum
}

// newTester returns a tester that compiles programs when they are needed. The folder must be empty.
func newTester(ctx context.Context, folder string, list []mutant, laws []suite, short bool) (*tester, error) {
	t := &tester{short: short, laws: laws, folder: folder, list: list, programs: map[string]string{}, usual: map[suite]baseline{}}
	var err error
	t.overlay, t.state, err = withSwitches(ctx, folder, list)
	return t, err
}

// suites returns the tests of a mutant's package, then those of other packages that test its behaviour.
func (t *tester) suites(m mutant) []suite {
	list := short(m.Package)
	if t.short {
		return list
	}
	list = append(list, suite{pkg: m.Package})
	for _, law := range t.laws {
		if law.pkg != m.Package {
			list = append(list, law)
		}
	}
	return list
}

// try runs tests on mutant i of the list until one fails. It skips tests that do not run the mutant's code. The outcome is nil if
// the mutant does not compile.
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
		var failed bool
		var how string
		if t.state[i] == mutantAlone {
			failed, how, err = t.alone(ctx, m, s, limitOf(usual.took()))
		} else {
			names, took := usual.reaching(i)
			for _, tests := range names {
				if len(tests) > 0 && !failed && err == nil {
					failed, how, err = t.run(ctx, s, tests, strconv.Itoa(i), limitOf(took))
				}
			}
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

// limitOf returns the time limit of tests that took the given time without a mutant.
func limitOf(took time.Duration) time.Duration { return 3*took + time.Minute }

// baseline runs each test of a suite once without a mutant, in its own process.
func (t *tester) baseline(ctx context.Context, s suite) (baseline, error) {
	if b, ok := t.usual[s]; ok {
		return b, nil
	}
	program, err := t.program(ctx, s.pkg)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-test.list", cmp.Or(s.only, "^(Test|Fuzz|Example)"))
	cmd.Dir = s.pkg
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s: %w", s.pkg, err)
	}
	b := baseline{}
	for name := range strings.FieldsSeq(string(out)) {
		test := usualTest{name: name, reached: map[int]bool{}}
		file := filepath.Join(t.folder, "reached-"+name)
		begin := time.Now()
		if failed, how, err := t.run(ctx, s, []string{name}, "reached "+file, 30*time.Minute); err != nil || failed {
			return nil, errors.Join(err, fmt.Errorf("%s fails without a mutant: %s", s, how))
		}
		test.took = time.Since(begin)
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, number := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(number)
			if err != nil {
				return nil, err
			}
			test.reached[n] = true
		}
		if err := os.RemoveAll(file); err != nil {
			return nil, err
		}
		b = append(b, test)
	}
	slices.SortFunc(b, func(a, b usualTest) int { return cmp.Compare(a.took, b.took) })
	t.usual[s] = b
	return b, nil
}

// program returns the path of a package's test program with switches. It compiles the program at the first call.
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

// run runs tests of a suite with a value of the environment variable, and returns the name of a failed test, if any.
func (t *tester) run(ctx context.Context, s suite, tests []string, choice string, limit time.Duration) (failed bool, how string, err error) {
	program, err := t.program(ctx, s.pkg)
	if err != nil {
		return false, "", err
	}
	args := []string{"-test.failfast", "-test.timeout", limit.Round(time.Second).String(), "-test.run", "^(" + strings.Join(tests, "|") + ")$"}
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

// result runs tests and returns the name of a failed test, if any.
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
