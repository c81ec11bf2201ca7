//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// reference is what an undisturbed run of a scenario does.
type reference struct {
	start  tree
	end    tree
	status int
	count  tally
}

// failure is a trial that found something, with the command that repeats it.
type failure struct {
	Scenario string   `json:"scenario"`
	Trial    int      `json:"trial"`
	Faults   []fault  `json:"faults"`
	What     []string `json:"what"`
	Repeat   string   `json:"repeat"`
	Runs     []string `json:"runs"`
}

// mostLines bounds what a failure says.
const mostLines = 8

// tester runs trials on one disk.
type tester struct {
	disk    *disk
	program string
}

// undisturbed runs a scenario without a fault, for later comparison.
func (t *tester) undisturbed(ctx context.Context, s scenario, start tree) (reference, error) {
	t.disk.reset(start)
	for _, line := range s.before {
		r, err := t.disk.execute(ctx, t.program, words(line), fault{Kind: kindNone})
		if err != nil || r.endings[0].status != 0 {
			return reference{}, fmt.Errorf("%s: before the trials: %v%s", s.name, err, r)
		}
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
	ref := reference{start: start, end: s.comparable(t.disk.contents()), status: e.status, count: r.count}
	if s.result != "" && len(ref.end.below("work/"+s.result)) == 0 {
		return reference{}, fmt.Errorf("%s: without a fault: work/%s is missing", s.name, s.result)
	}
	if wrong := sourceChanges(ref.end, start); len(wrong) > 0 {
		return reference{}, fmt.Errorf("%s: without a fault: %s", s.name, strings.Join(wrong, "; "))
	}
	return ref, nil
}

// minute is a time in a report.
var minute = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`)

// comparable drops the bytes that legitimately differ from run to run.
func (s scenario) comparable(t tree) tree {
	if result, ok := t["work/"+s.result]; ok {
		result.data = minute.ReplaceAllString(result.data, "now")
		t["work/"+s.result] = result
	}
	for _, folder := range s.varies {
		for name, f := range t.below("work/" + folder) {
			t[name] = file{f.mode, ""}
		}
	}
	return t
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

// try runs a scenario under faults, one a run, then without, and returns what is wrong. came are those that came: a fault at an operation that
// the run did not get to does not.
func (t *tester) try(ctx context.Context, s scenario, ref reference, faults []fault) (f failure, came []fault, err error) {
	f = failure{Scenario: s.name, Faults: faults}
	t.disk.reset(ref.start)
	said := ""
	done := false
	for i, next := range append(slices.Clone(faults), fault{Kind: kindNone}, fault{Kind: kindNone}) {
		last := i >= len(faults)
		if done && (!s.replace || i > len(faults)) { // the result is whole
			break
		}
		args := s.args
		if i > 0 {
			args = slices.Concat(args, s.again)
		}
		r, err := t.disk.execute(ctx, t.program, args, next)
		if err != nil || ctx.Err() != nil {
			return f, came, err
		}
		if r.fired && !last {
			came = append(came, next)
		}
		if next.Kind == kindPower {
			t.disk.losePower(rand.New(rand.NewPCG(next.Seed, 1)))
		}
		f.Runs = append(f.Runs, r.String())
		for _, e := range r.endings {
			said += e.stderr
		}
		now := s.comparable(t.disk.contents())
		f.What = append(f.What, r.complaints(ref.status)...)
		f.What = append(f.What, sourceChanges(now, ref.start)...)
		whole, wrong := s.wholeOrAbsent(now, ref.end)
		f.What = append(f.What, wrong...)
		done = whole || s.result == "" && last && r.succeeded(ref.status)
		if s.result != "" && r.succeeded(ref.status) && !whole {
			f.What = append(f.What, fmt.Sprintf("exit status %d, and work/%s is not there", ref.status, s.result))
		}
		if len(f.What) > 0 {
			break
		}
	}
	if len(f.What) == 0 && ctx.Err() == nil {
		now := s.comparable(t.disk.contents())
		if !done {
			f.What = append(f.What, "two runs without a fault did not succeed")
		}
		for _, line := range differences(now, ref.end) {
			if name, what, _ := strings.Cut(line, ": "); what == "should not be there" && strings.Contains(said, strings.TrimPrefix(name, "work/")) {
				continue // a message named it
			}
			inVaries := slices.ContainsFunc(s.varies, func(folder string) bool { return strings.HasPrefix(line, "work/"+folder) })
			if inVaries && strings.HasSuffix(line, ": is missing") {
				continue // a later run may not have needed it
			}
			f.What = append(f.What, "in the end: "+line)
		}
	}
	if len(f.What) > mostLines {
		f.What = append(f.What[:mostLines], "…")
	}
	js, err := json.Marshal(faults)
	f.Repeat = fmt.Sprintf("go run ./bench/torture -only %s -fault '%s'", s.name, js)
	return f, came, err
}

// succeeded says that a process of the run ended as an undisturbed one does.
func (r run) succeeded(status int) bool {
	return slices.ContainsFunc(r.endings, func(e ending) bool { return e.status == status })
}

// wholeOrAbsent compares the result with the undisturbed one, if it is there.
func (s scenario) wholeOrAbsent(now, end tree) (whole bool, wrong []string) {
	got := now.below("work/" + s.result)
	if len(got) == 0 || s.result == "" {
		return false, nil
	}
	for _, line := range differences(got, end.below("work/"+s.result)) {
		wrong = append(wrong, "the result is there and not whole: "+line)
	}
	return true, wrong
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
