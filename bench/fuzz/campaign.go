package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"
)

// campaign runs targets in turns.
type campaign struct {
	folder  string // the folder of the programs
	targets []target
	slice   time.Duration
	until   float64 // seconds that each target must run; 0: no such limit
	output  string  // file of the record; empty: none is written
	out     io.Writer

	mu      sync.Mutex
	record  *record
	now     run
	running map[target]bool
	crashed map[target]bool
}

// run runs targets for a time, now.AtOnce at the same time. After an interrupt it ends early, with all completed turns in the record.
func (c *campaign) run(ctx context.Context, length time.Duration) error {
	begin := time.Now()
	ctx, stop := context.WithDeadline(ctx, begin.Add(length))
	defer stop()
	c.running, c.crashed = map[target]bool{}, map[target]bool{}
	c.now.Go = runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	c.record.Runs = append(c.record.Runs, c.now)
	errs := make([]error, c.now.AtOnce)
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			for ctx.Err() == nil && errs[w] == nil {
				t, ok := c.next()
				if !ok {
					return
				}
				errs[w] = c.turn(ctx, t, begin)
			}
			if errs[w] != nil {
				stop()
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// next claims the target that has run for the shortest time.
func (c *campaign) next() (next target, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.targets {
		if c.running[t] || c.crashed[t] || c.until > 0 && c.reached(t) {
			continue
		}
		if !ok || c.of(t).Seconds < c.of(next).Seconds {
			next, ok = t, true
		}
	}
	if ok {
		c.running[next] = true
	}
	return next, ok
}

// reached reports whether a target has run for the time of -until and executed something.
func (c *campaign) reached(t target) bool {
	did := c.of(t)
	return did.Seconds >= c.until && did.Executions > 0
}

// of returns the tally of a target.
func (c *campaign) of(t target) *tally {
	have := c.record.Targets[t.String()]
	if have == nil {
		have = &tally{}
		c.record.Targets[t.String()] = have
	}
	return have
}

// turn runs a target for one slice of time and adds its tally to the record. On a busy machine a slice can end before the
// first execution. The next turn then takes longer than all turns before it.
func (c *campaign) turn(ctx context.Context, t target, begin time.Time) error {
	length := c.slice
	c.mu.Lock()
	if did := c.of(t); did.Executions == 0 {
		length += time.Duration(did.Seconds * float64(time.Second))
	}
	c.mu.Unlock()
	if end, ok := ctx.Deadline(); ok {
		length = min(length, time.Until(end))
	}
	length = max(length, time.Second)
	did, err := execute(ctx, c.folder, t, length)
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, t)
	have := c.of(t)
	have.Seconds += did.Seconds
	have.Processor += did.Processor
	have.Executions += did.Executions
	have.New += did.New
	have.Crashes = append(have.Crashes, did.Crashes...)
	c.crashed[t] = len(did.Crashes) > 0
	c.record.Runs[len(c.record.Runs)-1].Seconds = time.Since(begin).Seconds()
	note := ""
	if c.crashed[t] {
		note = "  FAILED\n" + did.Crashes[0].Output
	}
	fmt.Fprintf(c.out, "%-36s %5.0f s %9d executions %7.0f/s of a processor %5d new%s\n", t, did.Seconds, did.Executions, did.rate(), did.New, note)
	if c.output == "" {
		return nil
	}
	return c.record.write(c.output)
}

// failed reports whether a target failed in this run.
func (c *campaign) failed() bool {
	for _, failed := range c.crashed {
		if failed {
			return true
		}
	}
	return false
}

// unreached returns an error that names the targets that have not run for the time of -until, or have executed nothing.
func (c *campaign) unreached() error {
	if c.until <= 0 {
		return nil
	}
	var names []string
	for _, t := range c.targets {
		if !c.reached(t) {
			names = append(names, t.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("not run for %g s: %s; run again with a larger -for", c.until, strings.Join(names, ", "))
}

// print prints the tallies of all runs.
func (c *campaign) print() {
	fmt.Fprintf(c.out, "\n%-36s %9s %12s %19s %7s\n", "in all runs", "seconds", "executions", "a processor second", "failed")
	for _, t := range c.targets {
		did := c.of(t)
		fmt.Fprintf(c.out, "%-36s %9.0f %12d %19.0f %7d\n", t, did.Seconds, did.Executions, did.rate(), len(did.Crashes))
	}
}
