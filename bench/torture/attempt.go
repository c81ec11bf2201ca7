//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// attempt is the state of a trial.
type attempt struct {
	*tester
	scenario
	ref    reference
	said   string // standard error of all runs
	runs   []string
	came   []fault
	done   bool // the result is complete, or the command has succeeded
	edited bool // another program has changed the source
	wrong  []string
}

func (a *attempt) over() bool { return len(a.wrong) > 0 }

func (a *attempt) complain(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

// run runs the command under a fault, and checks the disk.
func (a *attempt) run(ctx context.Context, f fault) error {
	args := a.args
	if len(a.runs) > 0 {
		args = slices.Concat(args, a.again)
	}
	r, err := a.execute(ctx, args, f)
	if err != nil {
		return err
	}
	if r.fired && f.Kind != kindNone {
		a.came = append(a.came, f)
	}
	if f.Kind == kindPower {
		a.disk.losePower(rand.New(rand.NewPCG(f.Seed, 1)))
	}
	a.check(r)
	return nil
}

func (a *attempt) execute(ctx context.Context, args []string, f fault) (run, error) {
	r, err := a.disk.execute(ctx, a.program, args, f)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return r, err
	}
	a.runs = append(a.runs, r.String())
	for _, e := range r.endings {
		a.said += e.stderr
	}
	return r, nil
}

// check checks the end of a run and the disk.
func (a *attempt) check(r run) {
	refused := a.edited && r.endings[0].status == 1 && strings.Contains(r.endings[0].stderr, "changed since the conversion was begun")
	for _, what := range r.complaints(a.ref.status) {
		if !refused || !strings.HasSuffix(what, inSpite) {
			a.complain("%s", what)
		}
	}
	now := a.comparable(a.disk.contents())
	a.wrong = append(a.wrong, sourceChanges(now, a.ref.start)...)
	succeeded := r.succeeded(a.ref.status)
	if a.result != "" {
		a.done = a.whole(now)
		if succeeded && !a.done {
			a.complain("exit status %d, but work/%s is missing", a.ref.status, a.result)
		}
		return
	}
	a.done = succeeded
	if succeeded && r.fault.Kind != kindSeveral { // with several processes, the process of another part may have failed
		for _, line := range differences(now, a.ref.done) {
			if !strings.HasSuffix(line, leftOver) {
				a.complain("exit status %d, and %s", a.ref.status, line)
			}
		}
	}
}

// whole compares the result, if it exists, with that of an undisturbed run. An older result that the command replaces is
// allowed.
func (a *attempt) whole(now tree) bool {
	got := now.below("work/" + a.result)
	if len(got) == 0 {
		return false
	}
	if old := a.comparable(a.ref.start).below("work/" + a.result); len(old) > 0 && len(differences(got, old)) == 0 {
		return false
	}
	for _, line := range differences(got, a.ref.end.below("work/"+a.result)) {
		a.complain("the result exists, but is not complete: %s", line)
	}
	return true
}

// edit changes the source once, as another program would.
func (a *attempt) edit() {
	if a.ref.edited == nil || a.done {
		return
	}
	name := "src/" + a.scenario.edited
	a.disk.overwrite(name, a.ref.edited.start[name].data)
	a.ref, a.edited = *a.ref.edited, true
}

// settle runs the command without a fault until it succeeds, and then the commands that follow.
func (a *attempt) settle(ctx context.Context) error {
	for n := 0; !a.over() && (n == 0 && a.replace || n < 2 && !a.done); n++ {
		if n > 0 && a.edited { // the command refused to continue with the changed source; follow the advice in its message
			a.disk.clear("work/" + a.result + ".partial")
		}
		if err := a.run(ctx, fault{Kind: kindNone}); err != nil {
			return err
		}
	}
	if a.over() {
		return nil
	}
	if !a.done {
		a.complain("two runs without a fault did not succeed")
		return nil
	}
	if a.left() { // the next run removes the files of killed processes, even if it then ends with an error
		if _, err := a.execute(ctx, a.args, fault{Kind: kindNone}); err != nil {
			return err
		}
	}
	if err := a.all(ctx, a.then); err != nil {
		a.complain("a command that follows failed: %v", err)
	}
	return ctx.Err()
}

// left reports whether files exist that an undisturbed run does not leave.
func (a *attempt) left() bool {
	return slices.ContainsFunc(differences(a.comparable(a.disk.contents()), a.ref.done), func(line string) bool { return strings.HasSuffix(line, leftOver) })
}

// compareEnd compares the disk with the disk after an undisturbed run.
func (a *attempt) compareEnd() {
	lines := differences(a.comparable(a.disk.contents()), a.ref.end)
	for _, line := range lines {
		if name, what, _ := strings.Cut(line, ": "); ": "+what == leftOver && a.named(name, lines) {
			continue
		}
		inVaries := slices.ContainsFunc(a.varies, func(folder string) bool { return strings.HasPrefix(line, "work/"+folder) })
		if inVaries && strings.HasSuffix(line, ": is missing") {
			continue // a later run may not have needed it
		}
		a.complain("in the end: %s", line)
	}
}

// named reports whether a message named a path that should not exist, or such a folder above the path.
func (a *attempt) named(name string, lines []string) bool {
	for ; slices.Contains(lines, name+leftOver); name = path.Dir(name) {
		if strings.Contains(a.said, strings.TrimPrefix(name, "work/")) {
			return true
		}
	}
	return false
}
