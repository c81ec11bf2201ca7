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
	"slices"
	"time"
)

// tester runs mutants.
type tester struct {
	short    bool // only the short tests of a mutant's package
	laws     []string
	baseline map[string]time.Duration // of a suite, without a mutant
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

// try runs tests on a mutant until one fails. The outcome is nil if it does not compile.
func (t *tester) try(ctx context.Context, m mutant) (*outcome, error) {
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	overlay, err := m.overlay(folder)
	if err != nil {
		return nil, err
	}
	suites := []suite{{m.Package, true}}
	if !t.short {
		suites = append(suites, suite{m.Package, false})
		for _, pkg := range t.laws {
			if pkg != m.Package {
				suites = append(suites, suite{pkg, true})
			}
		}
	}
	begin := time.Now()
	for _, s := range suites {
		usual, ok := t.baseline[s.String()]
		if !ok {
			started := time.Now()
			if failed, how, err := test(ctx, "", s, 30*time.Minute); err != nil || failed {
				return nil, errors.Join(err, fmt.Errorf("%s fails without a mutant: %s", s, how))
			}
			usual = time.Since(started)
			t.baseline[s.String()] = usual
		}
		failed, how, err := test(ctx, overlay, s, 3*usual+time.Minute)
		if err != nil {
			return nil, err
		}
		if how == notCompiled {
			return nil, nil
		}
		if failed {
			return &outcome{mutant: m, Killed: true, By: s.String() + ": " + how, Seconds: time.Since(begin).Seconds()}, nil
		}
	}
	return &outcome{mutant: m, Seconds: time.Since(begin).Seconds()}, nil
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

// test runs a suite and says whether a test failed, and which.
func test(ctx context.Context, overlay string, s suite, limit time.Duration) (failed bool, how string, err error) {
	args := []string{"test", "-vet=off", "-failfast", "-count=1", "-timeout", limit.Round(time.Second).String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if s.short {
		args = append(args, "-short")
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+s.pkg)...)
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

// record is a sample of a group's mutants.
type record struct {
	Command     string    `json:"command"`
	Group       string    `json:"group"`
	Seed        uint64    `json:"seed"`
	Asked       int       `json:"asked"`
	Possible    int       `json:"possible"` // mutants of the group, with those that do not compile
	Mutants     []outcome `json:"mutants"`
	NotCompiled []mutant  `json:"not_compiled"`
}

// outcome is what the tests said of a mutant.
type outcome struct {
	mutant
	Killed  bool    `json:"killed"`
	By      string  `json:"by,omitempty"` // the first test that failed
	Seconds float64 `json:"seconds"`
}

func (o outcome) String() string {
	if o.Killed {
		return fmt.Sprintf("killed    %3.0f s  %s\n                 by %s", o.Seconds, o.mutant, o.By)
	}
	return fmt.Sprintf("SURVIVED  %3.0f s  %s", o.Seconds, o.mutant)
}

// summary counts the mutants.
func (r *record) summary() string {
	killed := 0
	for _, o := range r.Mutants {
		if o.Killed {
			killed++
		}
	}
	return fmt.Sprintf("%s: %d of %d mutants killed (of %d possible; seed %d)", r.Group, killed, len(r.Mutants), r.Possible, r.Seed)
}

// readRecord reads a record; a file that is absent is an empty one.
func readRecord(path string) (*record, error) {
	r := new(record)
	if path == "" {
		return r, nil
	}
	js, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(js, r)
	}
	return r, err
}

// write replaces the file. The order is that of the files, so that records of two days can be compared.
func (r *record) write(path string) error {
	slices.SortStableFunc(r.Mutants, func(a, b outcome) int { return a.compare(b.mutant) })
	slices.SortStableFunc(r.NotCompiled, mutant.compare)
	js, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, append(js, '\n'), 0o666)
}
