package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

const (
	patience   = 2 * time.Minute // a program that runs this much longer than requested counts as hanging
	mostOutput = 4 << 10         // bytes of a failure's output that are kept
)

// execute runs a target for a time. A failure of the target is in the tally; the error is an error of this command.
func execute(ctx context.Context, folder string, t target, length time.Duration) (*tally, error) {
	dir := filepath.Join(folder, treeName, filepath.FromSlash(t.Package))
	corpus := filepath.Join(folder, "corpus", filepath.FromSlash(t.Package))
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), length+patience)
	defer stop()
	var out bytes.Buffer
	cmd := exec.CommandContext(late, filepath.Join(dir, programName), "-test.run=^$", "-test.fuzz=^"+t.Name+"$", "-test.parallel=1",
		"-test.fuzztime="+length.String(), "-test.fuzzminimizetime=100x", "-test.fuzzcachedir="+corpus)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.WaitDelay = 10 * time.Second
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	interrupted := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			_ = cmd.Process.Signal(os.Interrupt) // an error means that the process has ended
		}
	})
	err := cmd.Wait()
	wasInterrupted := !interrupted() && errors.Is(ctx.Err(), context.Canceled)
	did := count(out.Bytes())
	did.Seconds = time.Since(begin).Seconds()
	did.Processor = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	failing := failingInput.FindSubmatch(out.Bytes())
	if err == nil || failing == nil && (wasInterrupted || late.Err() == nil && endedLate.Match(out.Bytes())) {
		return did, nil
	}
	c := crash{Date: begin.UTC().Format(time.DateOnly), Output: string(out.Bytes()[max(0, out.Len()-mostOutput):])}
	if late.Err() != nil {
		c.Output += "\nit did not end"
	}
	if failing != nil {
		if c.Input, err = keep(filepath.Join(dir, string(failing[1])), filepath.Join(folder, "crashes", filepath.FromSlash(t.Package), t.Name)); err != nil {
			return nil, err
		}
	}
	did.Crashes = []crash{c}
	return did, nil
}

var (
	progress     = regexp.MustCompile(`execs: (\d+) \(\d+/sec\), new interesting: (\d+)`)
	failingInput = regexp.MustCompile(`Failing input written to (testdata\S+)`)
	// What Go before 1.27 sometimes prints at the end of -fuzztime (go.dev/issue/75804). No input has failed.
	endedLate = regexp.MustCompile(`--- FAIL: \w+ \([\d.]+s\)\n    context deadline exceeded\nFAIL\n*$`)
)

// count returns the counts in the last line of progress; nil if there is none.
func count(output []byte) *tally {
	lines := progress.FindAllSubmatch(output, -1)
	if lines == nil {
		return &tally{}
	}
	last := lines[len(lines)-1]
	executions, _ := strconv.ParseInt(string(last[1]), 10, 64) // digits
	found, _ := strconv.ParseInt(string(last[2]), 10, 64)
	return &tally{Executions: executions, New: found}
}

// keep moves a failing input out of the seeds and returns its text. As a seed, the input would fail at the start of the next
// turn.
func keep(file, to string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return "", err
	}
	return string(text), os.Rename(file, filepath.Join(to, filepath.Base(file)))
}
