//go:build unix

package model

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
)

// TestOneSearchForAnOutput: while a search for an output runs, other conversions to it are refused. Afterwards no empty folder is
// left.
func TestOneSearchForAnOutput(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	own := &transform.Tokens{Dir: besideOut(out)}
	release, err := holdSearch(out, own)
	testmodel.OK(t, err)
	for _, other := range []*transform.Tokens{own, nil, {Dir: filepath.Join(t.TempDir(), "kept"), Keep: true}} {
		_, err := holdSearch(out, other)
		testmodel.WantError(t, err, own.Dir+": another process is using this folder: wait until it ends")
	}
	testmodel.OK(t, release())
	if _, err := os.Lstat(own.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	for _, other := range []*transform.Tokens{nil, own} {
		release, err := holdSearch(out, other)
		testmodel.OK(t, err)
		testmodel.OK(t, release())
	}
}

// TestCommandsReserveTheSearch: convert, also with a plan and with a finished output, and plan are refused while another process
// searches for their output. verify says that the conversion is not finished.
func TestCommandsReserveTheSearch(t *testing.T) {
	model, dir := random(t, "llama-tiny", func(string, []byte) {}), t.TempDir()
	out, file := filepath.Join(dir, "out"), randomTokens(t, 24)
	_, err := run(t.Context(), "plan", "-o", filepath.Join(dir, "given.json"), "--passes", "round=4", model)
	testmodel.OK(t, err)
	_, err = run(t.Context(), "convert", "--passes", "round=4", model, filepath.Join(dir, "finished"))
	testmodel.OK(t, err)
	for _, at := range []string{"out", "finished", "plan.json"} {
		testmodel.OK(t, os.MkdirAll(besideOut(filepath.Join(dir, at)), 0o777))
		held, err := lock.Folder(besideOut(filepath.Join(dir, at)))
		testmodel.OK(t, err)
		defer held.Close()
	}
	for _, args := range [][]string{
		{"convert", "--passes", "round=4", model, out},
		{"convert", "--plan", filepath.Join(dir, "given.json"), "--tokens", file, model, out},
		{"convert", "--passes", "round=4", "--tokens", file, model, filepath.Join(dir, "finished")},
		{"plan", "-o", filepath.Join(dir, "plan.json"), "--tokens", file, "--max-loss", "1%", "--passes", "grid", model},
	} {
		_, err := run(t.Context(), args...)
		testmodel.WantError(t, err, "another process is using this folder: wait until it ends")
	}
	testmodel.OK(t, os.MkdirAll(filepath.Join(besideOut(out), "search"), 0o777))
	_, err = run(t.Context(), "verify", model, out)
	testmodel.WantError(t, err, out+": this conversion is not finished")
}
