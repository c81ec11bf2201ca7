//go:build unix

package apply_test

import (
	"errors"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
)

// limitChild limits the size of a child's files, in bytes.
func limitChild(limit string) error {
	if limit == "" {
		return nil
	}
	n, err := strconv.ParseUint(limit, 10, 64)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ) // an error instead
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n})
}

func TestFileTooLarge(t *testing.T) {
	m, p := staged(t)
	for _, limit := range []string{"100", "10000", "24000"} {
		out := filepath.Join(t.TempDir(), "out")
		cmd := child(t, m, p, out, -1, limit)
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(string(text), "file too large") {
			t.Errorf("limit %s: %v: %s", limit, err, text)
		}
		testplan.NothingAt(t, out)
	}
}
