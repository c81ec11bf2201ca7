//go:build unix

package model

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

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
		testmodel.WantError(t, err, own.Dir+": another process searches in this folder for the same output: wait until it ends")
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
