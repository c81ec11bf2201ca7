//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// reference is the result of an undisturbed run of a scenario.
type reference struct {
	start  tree
	done   tree // after the command
	end    tree // after the commands that follow it
	status int
	count  tally
	edited *reference // the reference after another program changed the source; nil: no program changes it
}

// failure is a failed trial, with the command that repeats it.
type failure struct {
	Scenario string   `json:"scenario"`
	Trial    int      `json:"trial"`
	Faults   []fault  `json:"faults"`
	What     []string `json:"what"`
	Repeat   string   `json:"repeat"`
	Runs     []string `json:"runs"`
}

// mostLines is the largest number of lines of a failure.
const mostLines = 8

// tester runs trials on one disk.
type tester struct {
	disk    *disk
	program string
}

// undisturbed runs a scenario without a fault, for later comparison.
func (t *tester) undisturbed(ctx context.Context, s scenario, start tree) (reference, error) {
	t.disk.reset(start)
	if err := t.all(ctx, s.before); err != nil {
		return reference{}, fmt.Errorf("%s: before the trials: %w", s.name, err)
	}
	if len(s.before) > 0 {
		start = t.disk.contents()
		t.disk.reset(start)
	}
	r, err := t.disk.execute(ctx, t.program, s.args, fault{Kind: kindNone})
	if err != nil {
		return reference{}, err
	}
	e := r.endings[0]
	if e.status != 0 && e.status != 3 {
		return reference{}, fmt.Errorf("%s: without a fault: status %d, %s", s.name, e.status, e.stderr)
	}
	ref := reference{start: start, done: s.comparable(t.disk.contents()), status: e.status, count: r.count}
	if err := t.all(ctx, s.then); err != nil {
		return reference{}, fmt.Errorf("%s: after a run without a fault: %w", s.name, err)
	}
	ref.end = s.comparable(t.disk.contents())
	if s.result != "" && len(ref.end.below("work/"+s.result)) == 0 {
		return reference{}, fmt.Errorf("%s: without a fault: work/%s is missing", s.name, s.result)
	}
	if wrong := sourceChanges(ref.end, start); len(wrong) > 0 {
		return reference{}, fmt.Errorf("%s: without a fault: %s", s.name, strings.Join(wrong, "; "))
	}
	if s.edited == "" {
		return ref, nil
	}
	changed, err := editShard(start, s.edited)
	if err != nil {
		return reference{}, fmt.Errorf("%s: %w", s.name, err)
	}
	s.edited = ""
	other, err := t.undisturbed(ctx, s, changed)
	ref.edited = &other
	return ref, err
}

// all runs commands without a fault. Each must succeed.
func (t *tester) all(ctx context.Context, lines []string) error {
	for _, line := range lines {
		r, err := t.disk.execute(ctx, t.program, words(line), fault{Kind: kindNone})
		if err != nil {
			return err
		}
		if r.endings[0].status != 0 {
			return fmt.Errorf("%v", r)
		}
	}
	return nil
}

// sourceChanges lists what differs outside the folders in which a command may write.
func sourceChanges(now, start tree) []string {
	var out []string
	for _, line := range differences(now.outside(), start.outside()) {
		out = append(out, "the source was changed: "+line)
	}
	return out
}

func (t tree) outside() tree {
	out := tree{}
	for name, f := range t {
		if top, _, _ := strings.Cut(name, "/"); top != "work" && top != "tmp" && top != "home" {
			out[name] = f
		}
	}
	return out
}

// drawFaults chooses the faults of a trial: often one, sometimes more, each in the run after the one before.
func drawFaults(rng *rand.Rand, counted tally) []fault {
	faults := []fault{draw(rng, counted)}
	for len(faults) < 4 && rng.IntN(4) == 0 {
		faults = append(faults, draw(rng, counted))
	}
	return faults
}

// try runs a scenario under faults, one per run, then without a fault, and returns the failure. came are the faults that
// occurred: a run may end before the operation of its fault.
func (t *tester) try(ctx context.Context, s scenario, ref reference, faults []fault) (f failure, came []fault, err error) {
	t.disk.reset(ref.start)
	a := &attempt{tester: t, scenario: s, ref: ref}
	for _, next := range faults {
		if err := a.run(ctx, next); err != nil || a.over() {
			return a.failure(faults), a.came, err
		}
		if a.done && !s.replace {
			break
		}
		a.edit()
	}
	if err := a.settle(ctx); err != nil {
		return a.failure(faults), a.came, err
	}
	if !a.over() {
		a.compareEnd()
	}
	return a.failure(faults), a.came, nil
}

// failure returns the differences and complaints of a trial.
func (a *attempt) failure(faults []fault) failure {
	if len(a.wrong) > mostLines {
		a.wrong = append(a.wrong[:mostLines], "…")
	}
	js, _ := json.Marshal(faults)
	return failure{Scenario: a.name, Faults: faults, What: a.wrong, Runs: a.runs, Repeat: fmt.Sprintf("go run ./bench/torture -only %s -fault '%s'", a.name, js)}
}

// succeeded reports whether a process of the run ended like an undisturbed one.
func (r run) succeeded(status int) bool {
	return slices.ContainsFunc(r.endings, func(e ending) bool { return e.status == status })
}

func (r run) String() string {
	js, _ := json.Marshal(r.fault)
	var b strings.Builder
	fmt.Fprintf(&b, "%s under %s:", strings.Join(r.args, " "), js)
	for _, e := range r.endings {
		text := e.stderr
		if len(text) > 1500 {
			text = text[:1500] + "…"
		}
		if e.status < 0 {
			fmt.Fprintf(&b, " [%v]", e.signal)
		} else {
			fmt.Fprintf(&b, " [status %d]", e.status)
		}
		if text != "" {
			fmt.Fprintf(&b, " %s", strings.TrimSpace(text))
		}
	}
	return b.String()
}
