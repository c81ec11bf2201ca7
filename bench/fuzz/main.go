// Command fuzz runs the module's fuzz targets in turns, for hours, and records how long each target ran.
//
//	go run ./bench/fuzz -build FOLDER                 # build one instrumented program per package, with the seeds and this command
//	FOLDER/fuzz -for 20m -at-once 10 -o record.json   # run them on any Linux on x86-64, without Go
//	go run ./bench/fuzz -for 1h -at-once 2            # both steps on this machine
//
// Each target runs in one process with GOMAXPROCS=1. The target that has run for the shortest time runs next, for the time of
// -slice. If the file of -o exists, its record is continued, and so is the corpus in FOLDER/corpus. A target that fails does
// not run again in this run. The record has its output, and its input in the form of testdata/fuzz.
//
// Targets that write files write them to TMPDIR, which should be in memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := fuzz(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
	}
	if err != nil || failed {
		stop()
		os.Exit(1)
	}
}

// fuzz runs the command with its flags, and reports whether any target failed.
func fuzz(ctx context.Context, args []string) (failed bool, err error) {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	to := flags.String("build", "", "build the programs into this folder, and run nothing")
	folder := flags.String("folder", "", "folder of the programs (default: this command's; built from this checkout if there are none)")
	length := flags.Duration("for", time.Minute, "how long to run")
	slice := flags.Duration("slice", time.Minute, "time that a target runs before the next target runs")
	until := flags.Duration("until", 0, "end when every target has run for this time in the record; it is an error if one has not when -for is over")
	atOnce := flags.Int("at-once", runtime.NumCPU(), "targets that run at the same time")
	only := flags.String("only", "", "regular expression of the targets, such as weights.Fuzz (default: all)")
	output := flags.String("o", "", "add to the record in this file")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if flags.NArg() > 0 {
		return false, fmt.Errorf("%s: unexpected argument", flags.Arg(0))
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}
	if *to != "" {
		return false, build(ctx, *to, match)
	}
	at, temporary, err := programs(ctx, *folder, match)
	if err != nil {
		return false, err
	}
	if temporary {
		defer os.RemoveAll(at)
	}
	list, err := targets(at, match)
	if err != nil {
		return false, err
	}
	rec, err := readRecord(*output)
	if err != nil {
		return false, err
	}
	c := &campaign{folder: at, targets: list, slice: *slice, until: until.Seconds(), output: *output, record: rec, out: os.Stdout,
		now: run{Date: time.Now().UTC().Format(time.DateOnly), Command: "fuzz " + strings.Join(args, " "), Processors: runtime.NumCPU(), AtOnce: max(1, *atOnce)}}
	err = errors.Join(c.run(ctx, *length), c.unreached())
	c.print()
	return c.failed(), err
}

// programs returns the folder of the programs: the given one, this command's, or a new one, which is temporary.
func programs(ctx context.Context, given string, match *regexp.Regexp) (folder string, temporary bool, err error) {
	if given != "" {
		folder, err = filepath.Abs(given)
		return folder, false, err
	}
	if self, err := os.Executable(); err == nil {
		if _, err := os.Stat(filepath.Join(filepath.Dir(self), listName)); err == nil {
			return filepath.Dir(self), false, nil
		}
	}
	if folder, err = os.MkdirTemp("", "fuzz"); err != nil {
		return "", false, err
	}
	if err := build(ctx, folder, match); err != nil {
		os.RemoveAll(folder)
		return "", false, err
	}
	return folder, true, nil
}
