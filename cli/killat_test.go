//go:build unix

package cli

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// scriptKillAt is killat SIGNAL BYTES OUT PROGRAM ARGS.... It runs a program and sends it INT or KILL when
// OUT.partial has this many bytes (0: when the folder exists). If OUT ends in .search, it watches OUT itself. The
// program must still run at that time, and an interrupted program must end soon by itself.
func scriptKillAt(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "SIGNAL BYTES OUT PROGRAM...")
	sig := map[string]os.Signal{"INT": os.Interrupt, "KILL": os.Kill}[args[0]]
	least, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	path, err := exec.LookPath(filepath.Join(firstFolder(ts.Getenv("PATH")), args[3]))
	ts.Check(err)
	cmd := exec.Command(path, args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	watched := args[2]
	if filepath.Ext(watched) != ".search" {
		watched += ".partial"
	}
	for there := int64(-1); there < least; there = bytesIn(ts.MkAbs(watched)) {
		select {
		case err := <-ended:
			ts.Fatalf("it ended (%v) before %d bytes were written:\n%s", err, least, stderr.String())
		case <-time.After(200 * time.Microsecond):
		}
	}
	ts.Check(cmd.Process.Signal(sig))
	select {
	case <-ended:
	case <-time.After(10 * time.Second): // one second on an idle machine
		cmd.Process.Kill()
		ts.Fatalf("it went on for ten seconds")
	}
	ts.Check(os.WriteFile(ts.MkAbs("killed"), stderr.Bytes(), 0o666))
	if st := cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() != (sig == os.Kill) || st.Exited() && st.ExitStatus() != exit.Failed {
		ts.Fatalf("it was done before the signal came, or ended wrongly: %v\n%s", cmd.ProcessState, stderr.String())
	}
}

func firstFolder(path string) string { return filepath.SplitList(path)[0] }

// bytesIn returns the size of all files in a folder; −1 if there is no folder.
func bytesIn(dir string) int64 {
	if _, err := os.Stat(dir); err != nil {
		return -1
	}
	var n int64
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
