//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// mostFailures is the number of failures that ends a campaign.
const mostFailures = 20

// campaign is a series of trials.
type campaign struct {
	seed      uint64
	workers   int
	program   string
	scratch   string
	scenarios []scenario
	out       io.Writer

	references map[string]reference

	mu  sync.Mutex
	rec record
}

// record has the results of a campaign. Only faults that occurred are counted.
type record struct {
	Command   string         `json:"command"`
	Date      string         `json:"date"`
	Go        string         `json:"go"`
	Seconds   float64        `json:"seconds"`
	Seed      uint64         `json:"seed"`
	Workers   int            `json:"workers"`
	Trials    int            `json:"trials"`
	Faults    int            `json:"faults"`
	Drawn     int            `json:"faults_drawn"`
	Kinds     map[string]int `json:"faults_by_kind"`
	Scenarios map[string]int `json:"trials_by_scenario"`
	Failures  []failure      `json:"failures"`
}

// prepare makes the models and the undisturbed results.
func (c *campaign) prepare(ctx context.Context) error {
	starts, err := prepare(ctx, c.program, c.scratch)
	if err != nil {
		return err
	}
	d, err := mount(c.scratch)
	if err != nil {
		return err
	}
	defer d.unmount()
	t := &tester{disk: d, program: c.program}
	c.references = map[string]reference{}
	for _, s := range c.scenarios {
		ref, err := t.undisturbed(ctx, s, starts[s.source])
		if err != nil {
			return err
		}
		c.references[s.name] = ref
	}
	return nil
}

// run makes trials for a time.
func (c *campaign) run(ctx context.Context, length time.Duration) (*record, error) {
	begin := time.Now()
	c.rec = record{Date: begin.UTC().Format(time.DateOnly), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, Seed: c.seed, Workers: c.workers,
		Kinds: map[string]int{}, Scenarios: map[string]int{}, Failures: []failure{}, Command: fmt.Sprintf("go run ./bench/torture -for %v -seed %d -workers %d", length, c.seed, c.workers)}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var next int
	group, inner := errgroup.WithContext(ctx)
	for range c.workers {
		d, err := mount(c.scratch)
		if err != nil {
			return nil, err
		}
		defer d.unmount()
		group.Go(func() error {
			t := &tester{disk: d, program: c.program}
			for inner.Err() == nil {
				c.mu.Lock()
				number := next
				next++
				enough := len(c.rec.Failures) >= mostFailures
				c.mu.Unlock()
				if enough {
					return nil
				}
				if err := c.trial(inner, t, number); err != nil && inner.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	c.rec.Seconds = time.Since(begin).Seconds()
	return &c.rec, err
}

// afterEnd is a loss of power after the program's end. With this seed all unsynced data is lost.
var afterEnd = fault{Kind: kindPower, After: true, Seed: 0}

// found are scenarios and faults under which an earlier version of lowtoggle failed.
var found = []struct {
	scenario string
	faults   []fault
}{
	// The name of a record was not durable when the next call used the record. A loss of power then lost the record.
	{"part", []fault{{Kind: kindError, N: 8, Op: new(opFsyncDir), Errno: syscall.EIO, Lasting: true}, afterEnd}},
	// After a failed stat, a new folder was made again in an endless loop.
	{"synth", []fault{{Kind: kindError, N: 6, Op: new(opGetAttr), Errno: syscall.EACCES, Lasting: true}}},
}

// choose returns the scenario and the faults of trial number. The first trials are each scenario with afterEnd, then the
// entries of found. In later trials, the seed and the number choose the scenario. Seed, number and the scenario's name choose
// the faults.
func (c *campaign) choose(number int) (scenario, []fault) {
	if number < len(c.scenarios) {
		return c.scenarios[number], []fault{afterEnd}
	}
	if i := number - len(c.scenarios); i < len(found) {
		if at := slices.IndexFunc(c.scenarios, func(s scenario) bool { return s.name == found[i].scenario }); at >= 0 {
			return c.scenarios[at], found[i].faults
		}
	}
	s := drawScenario(rand.New(rand.NewPCG(c.seed, uint64(number))), c.scenarios)
	hash := fnv.New64a()
	io.WriteString(hash, s.name)
	return s, drawFaults(rand.New(rand.NewPCG(c.seed^hash.Sum64(), uint64(number))), c.references[s.name].count)
}

// trial runs the trial of a number.
func (c *campaign) trial(ctx context.Context, t *tester, number int) error {
	s, faults := c.choose(number)
	f, came, err := t.try(ctx, s, c.references[s.name], faults)
	if err != nil || ctx.Err() != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rec.Trials++
	c.rec.Drawn += len(faults)
	c.rec.Faults += len(came)
	c.rec.Scenarios[s.name]++
	for _, one := range came {
		c.rec.Kinds[one.Kind]++
	}
	if len(f.What) > 0 {
		f.Trial = number
		c.rec.Failures = append(c.rec.Failures, f)
		fmt.Fprint(c.out, f)
	}
	return nil
}

// repeat runs the first scenario under given faults, and reports whether the trial failed.
func (c *campaign) repeat(ctx context.Context, given string) (failed bool, err error) {
	var faults []fault
	if err := json.Unmarshal([]byte(given), &faults); err != nil {
		return false, fmt.Errorf("-fault: %w", err)
	}
	if len(c.scenarios) != 1 {
		return false, errors.New("-fault needs one scenario in -only")
	}
	d, err := mount(c.scratch)
	if err != nil {
		return false, err
	}
	defer d.unmount()
	t := &tester{disk: d, program: c.program}
	s := c.scenarios[0]
	f, came, err := t.try(ctx, s, c.references[s.name], faults)
	if err != nil {
		return false, err
	}
	fmt.Fprint(c.out, f)
	fmt.Fprintf(c.out, "%d faults were injected\n", len(came))
	return len(f.What) > 0, nil
}

func (f failure) String() string {
	var b strings.Builder
	if len(f.What) > 0 {
		fmt.Fprintf(&b, "FAILED %s\n", f.Scenario)
	}
	for _, what := range f.What {
		fmt.Fprintf(&b, "  %s\n", what)
	}
	for _, r := range f.Runs {
		fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(r, "\n", "\n      "))
	}
	fmt.Fprintf(&b, "  repeat: %s\n", f.Repeat)
	return b.String()
}

func (r *record) print(w io.Writer) {
	fmt.Fprintf(w, "%d trials, %d faults in %.0f s (%.1f a second), %d failures, seed %d\n",
		r.Trials, r.Faults, r.Seconds, float64(r.Faults)/r.Seconds, len(r.Failures), r.Seed)
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		fmt.Fprintf(w, "  %-12s %d\n", kind, r.Kinds[kind])
	}
}
