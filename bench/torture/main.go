//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/recordfile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := torture(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
	}
	if err != nil || failed {
		stop()
		os.Exit(1)
	}
}

// torture runs the trials of the flags, and reports whether any failed.
func torture(ctx context.Context, args []string) (failed bool, err error) {
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	length := flags.Duration("for", time.Minute, "how long to run")
	seed := flags.Uint64("seed", 1, "seed that chooses scenarios and faults")
	workers := flags.Int("workers", runtime.NumCPU(), "disks in use at the same time")
	program := flags.String("program", "", "path of lowtoggle (default: built from this checkout)")
	only := flags.String("only", "", "scenarios, separated by commas (default: all)")
	given := flags.String("fault", "", "repeat these faults, in JSON, with the scenario of -only")
	output := flags.String("o", "", "write a record to this file")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return false, nil
	case err != nil:
		return false, err
	case flags.NArg() > 0:
		return false, fmt.Errorf("%s: unexpected argument", flags.Arg(0))
	}
	if reason := cannotMount(); reason != "" {
		fmt.Println("torture: not run:", reason)
		return false, nil
	}
	list, err := named(*only)
	if err != nil {
		return false, err
	}
	scratch, err := os.MkdirTemp("", "torture")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	path, err := executable(ctx, *program, scratch)
	if err != nil {
		return false, err
	}
	c := &campaign{seed: *seed, workers: max(1, *workers), program: path, scenarios: list, scratch: scratch, out: os.Stdout}
	if err := c.prepare(ctx); err != nil {
		return false, err
	}
	if *given != "" {
		return c.repeat(ctx, *given)
	}
	rec, err := c.run(ctx, *length)
	if err != nil {
		return false, err
	}
	rec.print(os.Stdout)
	if *output != "" {
		if err := recordfile.Write(*output, rec); err != nil {
			return false, err
		}
	}
	return len(rec.Failures) > 0, nil
}

// cannotMount returns the reason why the disk in memory cannot be mounted here; empty if it can.
func cannotMount() string {
	if os.Geteuid() != 0 {
		return "mounting needs root"
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return "the disk in memory needs FUSE: " + err.Error()
	}
	f.Close()
	folder, err := os.MkdirTemp("", "torture")
	if err != nil {
		return err.Error()
	}
	defer os.Remove(folder)
	d, err := mount(folder)
	if err != nil {
		return err.Error()
	}
	d.unmount()
	return ""
}

// executable returns the path of the program under test, which it builds if none is given.
func executable(ctx context.Context, given, scratch string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	path := filepath.Join(scratch, "lowtoggle")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/lowtoggle/lowtoggle")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building lowtoggle: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return path, nil
}
