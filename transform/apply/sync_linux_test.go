package apply_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// TestJournalIsFlushed: a record is flushed to the disk before the conversion continues. A pipe accepts the record but
// cannot be flushed, so the journal must return an error.
func TestJournalIsFlushed(t *testing.T) {
	r, w, err := os.Pipe()
	testmodel.OK(t, err)
	defer r.Close()
	err = apply.Finish(t.TempDir(), w, plan.Shard{File: "model.safetensors"})
	if !errors.Is(err, unix.EINVAL) {
		t.Errorf("recorded without a flush: %v", err)
	}
	testmodel.OK(t, w.Close())
	if record, err := io.ReadAll(r); err != nil || !bytes.Contains(record, []byte("model.safetensors")) {
		t.Errorf("%q, %v", record, err)
	}
}

// TestShardsAreClosed: a conversion closes every file of its output, and weights.Writer flushes a shard when it is closed.
func TestShardsAreClosed(t *testing.T) {
	m, p := staged(t)
	out := testplan.Applied(t, m, nil, p)
	open, err := filepath.Glob("/proc/self/fd/*")
	testmodel.OK(t, err)
	for _, fd := range open {
		if path, err := os.Readlink(fd); err == nil && strings.HasPrefix(path, filepath.Clean(out)) {
			t.Errorf("%s is still open", path)
		}
	}
}
