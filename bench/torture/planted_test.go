//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// planted is the environment variable that names the mistake of the program that the test binary then is.
const planted = "TORTURE_PLANTED"

var plantedFiles = []string{"a", "b"}

// mistakes maps mistakes that a program may have to a part of the message about each.
var mistakes = map[string]string{
	"no fsync of files":     "the result exists, but is not complete",
	"no fsync of folders":   "work/out",
	"no lock":               "work/out",
	"fsync after rename":    "the result exists, but is not complete",
	"no temporary name":     "the result exists, but is not complete",
	"temporary files stay":  "should not be there",
	"errors are ignored":    "the result exists, but is not complete",
	"source is written":     "the source was changed",
	"panic":                 "a trace on standard error",
	"long messages":         "bytes on standard error",
	"undocumented statuses": "is not documented",
	"no message":            "without a message",
	"signals":               "ended the program",
	"short writes":          "the result exists, but is not complete",
}

// plant copies the files of ../src to the folder out, as lowtoggle would, but for one mistake.
func plant(mistake string) int {
	if mistake != "signals" {
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM)
		go func() {
			fmt.Fprintln(os.Stderr, <-interrupted)
			os.Exit(1)
		}()
	}
	err := copyFiles(mistake)
	switch {
	case err == nil:
		return 0
	case mistake == "panic":
		panic(err)
	case mistake == "no message":
		return 1
	case mistake == "long messages":
		fmt.Fprintln(os.Stderr, strings.Repeat(err.Error(), 1000))
		return 1
	}
	fmt.Fprintln(os.Stderr, err)
	if mistake == "undocumented statuses" {
		return 7
	}
	return 1
}

func copyFiles(mistake string) error {
	if mistake != "no lock" {
		lock, err := os.Open(".")
		if err != nil {
			return err
		}
		defer lock.Close()
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return fmt.Errorf("another process: %w", err)
		}
	}
	if _, err := os.Lstat("out"); err == nil {
		return errors.New("out is there")
	}
	stage := "out.partial"
	switch mistake {
	case "no temporary name":
		stage = "out"
	case "temporary files stay":
		stage = fmt.Sprint("out.partial", os.Getpid())
	}
	if _, err := os.Lstat(stage); err == nil && mistake == "source is written" {
		if err := os.Chmod("../src/a", 0o600); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(stage); err != nil {
		return err
	}
	if err := os.Mkdir(stage, 0o755); err != nil {
		return err
	}
	for _, name := range plantedFiles {
		err := copyFile(mistake, filepath.Join(stage, name), "../src/"+name)
		if err != nil && mistake != "errors are ignored" {
			if errors.Is(err, fs.ErrExist) {
				return err
			}
			return errors.Join(err, os.RemoveAll(stage))
		}
	}
	if err := syncPath(mistake, stage, "no fsync of folders"); err != nil {
		return err
	}
	if stage != "out" {
		if err := os.Rename(stage, "out"); err != nil {
			return err
		}
	}
	if mistake == "fsync after rename" {
		for _, name := range plantedFiles {
			if err := syncPath("", "out/"+name, ""); err != nil {
				return err
			}
		}
	}
	return syncPath(mistake, ".", "no fsync of folders")
}

func copyFile(mistake, to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if mistake == "short writes" {
		if _, err := syscall.Write(int(f.Fd()), data); err != nil {
			return err
		}
	} else if _, err := f.Write(data); err != nil {
		return err
	}
	if mistake == "no fsync of files" || mistake == "fsync after rename" {
		return nil
	}
	return f.Sync()
}

func syncPath(mistake, path, not string) error {
	if mistake == not && not != "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
