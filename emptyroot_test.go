//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestEmptyRoot checks that the static build converts and verifies in a root folder with only the program and a model. Commands
// that need a GPU must end with their own exit status.
func TestEmptyRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	root := t.TempDir()
	program := filepath.Join(root, "lowtoggle")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-tags", "nogpu", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	isStatic(t, program)
	for _, c := range []struct {
		line, want string
		status     int
	}{
		{"synth llama-tiny model --shard-size 60kB", "model written", 0},
		{"convert model out --passes scale,round=4", "out written", 0},
		{"verify model out", "ok: ", 0},
		{"plan model --passes round=2", "plan written", 0},
		{"convert model parts --plan plan.json --part 1/2", "part 1/2: written", 0},
		{"convert model parts --plan plan.json --part 2/2", "part 2/2: written", 0},
		{"convert model parts --plan plan.json --finish", "parts finished", 0},
		{"demo --keep kept", "verified", 0},
		{"verify model out --gpu", "GPU", 4},
		{"measure", "GPU", 4},
	} {
		cmd := exec.Command("/lowtoggle", strings.Fields(c.line)...)
		cmd.Dir, cmd.Env = "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if cmd.ProcessState == nil {
			t.Skip("chroot is not possible here: ", err)
		}
		if cmd.ProcessState.ExitCode() != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: status %d, want %d and %q:\n%s", c.line, cmd.ProcessState.ExitCode(), c.status, c.want, &out)
		}
	}
}

// isStatic fails the test if a program needs a dynamic loader or a shared library.
func isStatic(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the program needs %v, error %v", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a loader")
		}
	}
}
