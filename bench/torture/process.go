//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hang is the longest time of a run with all its processes, on a busy machine.
var hang = time.Minute

// wrapper starts the program in the disk's work folder, under the limits of memory (KiB) and descriptors. It waits for a line
// of input first, so that the program does nothing before the disk counts.
const wrapper = `cd "$1" && read go && { [ "$2" = 0 ] || ulimit -v "$2"; } && { [ "$3" = 0 ] || ulimit -n "$3"; } && shift 3 && exec "$@"`

// ending is the end of one process.
type ending struct {
	status int            // −1 after a signal
	signal syscall.Signal // signal that ended the process
	stderr string
	hung   bool
}

// run is the result of one run of a command line: the ending of each of its processes.
type run struct {
	fault   fault
	args    []string
	endings []ending
	count   tally
	fired   bool
}

// execute runs the program with args on the disk under a fault.
func (d *disk) execute(ctx context.Context, program string, args []string, f fault) (run, error) {
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	var memory, descriptors int64
	processes := 1
	switch f.Kind {
	case kindMemory:
		memory = f.Amount
	case kindDescriptors:
		descriptors = f.Amount
	case kindSeveral:
		processes = int(f.Amount)
	}
	list := make([]*process, processes)
	for i := range list {
		p, err := start(ctx, d.folder, program, ofPart(args, 1+i%2), memory, descriptors)
		if err != nil {
			return run{}, err
		}
		list[i] = p
	}
	d.arm(f, list[0].cmd.Process.Pid)
	for _, p := range list {
		p.stdin.Write([]byte("\n"))
		p.stdin.Close()
	}
	r := run{fault: f, args: args}
	for _, p := range list {
		r.endings = append(r.endings, p.wait(ctx))
	}
	r.count, r.fired = d.disarm()
	failed := r.endings[0].status != 0
	switch f.Kind {
	case kindMemory, kindDescriptors:
		r.fired = failed
	case kindSeveral:
		r.fired = true
	case kindPower:
		r.fired = true // afterEnd occurs now
	}
	return r, nil
}

// ofPart replaces the number of the part in a command line.
func ofPart(args []string, part int) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		out[i] = strings.ReplaceAll(arg, "{part}", strconv.Itoa(part))
	}
	return out
}

type process struct {
	cmd   *exec.Cmd
	stdin interface {
		Write([]byte) (int, error)
		Close() error
	}
	stderr bytes.Buffer
}

func start(ctx context.Context, folder, program string, args []string, memory, descriptors int64) (*process, error) {
	all := append([]string{"-c", wrapper, "sh", folder + "/work", fmt.Sprint(memory), fmt.Sprint(descriptors), program}, args...)
	p := &process{cmd: exec.CommandContext(ctx, "/bin/sh", all...)}
	p.cmd.Dir = "/"
	p.cmd.Env = append(os.Environ(), "TMPDIR="+folder+"/tmp", "HOME="+folder+"/home", "GOTRACEBACK=single", "GOGC=400")
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	return p, p.cmd.Start()
}

func (p *process) wait(ctx context.Context) ending {
	err := p.cmd.Wait()
	e := ending{stderr: p.stderr.String(), hung: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	if e.status = p.cmd.ProcessState.ExitCode(); e.status < 0 {
		if st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			e.signal = st.Signal()
		} else {
			e.stderr += fmt.Sprint(err)
		}
	}
	return e
}

// runAgain is the exit status that asks a scheduler to run a part again.
const runAgain = 75

// longestMessage bounds standard error.
const longestMessage = 4096

// inSpite ends the complaint about a run that failed although its fault must not make it fail.
const inSpite = " in spite of the fault"

// complaints returns the errors in the endings of the run's processes.
func (r run) complaints(want int) []string {
	var out []string
	succeeded := false
	for _, e := range r.endings {
		out = append(out, e.complaints(r.fault)...)
		succeeded = succeeded || e.status == want
	}
	if r.fault.mustSucceed() && !succeeded {
		out = append(out, fmt.Sprintf("status %d, want %d%s", r.endings[0].status, want, inSpite))
	}
	return out
}

func (e ending) complaints(f fault) []string {
	var out []string
	starved := (f.Kind == kindMemory || f.Kind == kindDescriptors) && starvedRuntime(e.stderr)
	switch {
	case e.hung:
		out = append(out, fmt.Sprintf("the program did not end within %v", hang))
	case e.status < 0 && !f.endsProcess() && !starved:
		out = append(out, fmt.Sprintf("signal %v ended the program", e.signal))
	case e.status > 4 && e.status != runAgain:
		out = append(out, fmt.Sprintf("exit status %d is not documented", e.status))
	case e.status > 0 && strings.TrimSpace(e.stderr) == "" && e.status != 3:
		out = append(out, fmt.Sprintf("exit status %d without a message", e.status))
	}
	if starved {
		return out
	}
	for _, trace := range []string{"panic: ", "goroutine ", "fatal error: ", "SIGSEGV", "SIGBUS", "runtime error"} {
		if strings.Contains(e.stderr, trace) {
			out = append(out, "a trace on standard error: "+trace)
			break
		}
	}
	if len(e.stderr) > longestMessage {
		out = append(out, fmt.Sprintf("%d bytes on standard error", len(e.stderr)))
	}
	return out
}

// starvedRuntime reports whether the Go runtime itself ended the program for lack of memory, threads or descriptors, which no
// program can prevent.
func starvedRuntime(stderr string) bool {
	for _, text := range []string{"runtime: eventfd failed", "runtime: epollcreate failed", "out of memory", "cannot allocate memory", "failed to create new OS thread",
		"failed to reserve", "newosproc", "pthread_create failed", "cannot map pages in arena", "errno=12"} {
		if strings.Contains(stderr, text) {
			return true
		}
	}
	return false
}
