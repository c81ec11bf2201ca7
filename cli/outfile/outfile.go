// Package outfile checks and writes the files of -o: plans, reports and pictures.
package outfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// CheckPlan returns an error, before any work is done, if the plan's file cannot be written or lies in the model's
// folder. An empty path is no error.
func CheckPlan(ctx context.Context, path, model string, m *weights.Model) error {
	switch {
	case path == "":
		return nil
	case weights.IsURL(path):
		return checkStoredPlan(ctx, path, model)
	}
	st, err := os.Stat(path)
	switch {
	case err == nil && st.IsDir():
		return exit.OutputError(weights.FileErrorf(path, "is a folder: name a file with -o"))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for _, f := range m.Shards {
		if own, ferr := os.Stat(f.Path); err == nil && ferr == nil && os.SameFile(st, own) {
			return exit.OutputError(weights.FileErrorf(path, "is part of the model: name another file with -o"))
		}
	}
	if err == nil && st.Mode().IsRegular() && st.Size() > 0 {
		if _, notPlan := plan.Read(path); notPlan != nil {
			return exit.OutputExists(weights.FileErrorf(path, "exists and is not a plan, so lowtoggle does not replace it: name another file with -o"))
		}
	}
	if err := CheckParent(path); err != nil {
		return err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	if within, err := Inside(parent, model); err != nil || within {
		return errors.Join(err, exit.OutputError(weights.FileErrorf(path, "lies in the model's folder: name a file elsewhere with -o")))
	}
	return nil
}

// Inside reports whether a folder is the model's folder or lies within it. A model that is a single file has no
// folder. A model in a bucket has no folder on a disk.
func Inside(dir, model string) (bool, error) {
	if weights.IsURL(model) {
		return false, nil
	}
	if st, err := os.Stat(model); err != nil || !st.IsDir() {
		return false, err
	}
	model, err := filepath.EvalSymlinks(model)
	if err != nil {
		return false, err
	}
	if model, err = filepath.Abs(model); err != nil {
		return false, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(model, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)), nil
}

// Write writes a file whole or not at all. Into a pipe or device, Write writes without replacing it.
func Write(path string, data []byte) error {
	if path == "" {
		return nil
	}
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return overwrite(path, data)
	}
	return atomicfile.Write(path, data)
}

// Check returns an error, before any work is done, if Write cannot write the file. A pipe or device is no error.
func Check(path string) error {
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return nil
	}
	if err := CheckParent(path); err != nil {
		return err
	}
	if err := atomicfile.Check(path); err != nil {
		return exit.OutputError(weights.FileErrorf(path, "the file cannot be written (%w): name another file", err))
	}
	return nil
}

// CheckParent returns an error if the parent folder of path does not exist.
func CheckParent(path string) error {
	if weights.IsURL(path) {
		return nil
	}
	parent := filepath.Dir(filepath.Clean(path))
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		return exit.OutputError(weights.FileErrorf(path, "the folder %s does not exist: create it first", parent))
	}
	return nil
}

func overwrite(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
