// Package deploy has only tests. They run the files that deploy lowtoggle on Slurm and Kubernetes.
package deploy

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/lowtoggle/lowtoggle/cli" // go test runs these tests again when the program has changed
)

// packageDir is the folder of these tests.
var packageDir = func() string { dir, _ := os.Getwd(); return dir }()

// build builds the program without cgo and GPU, as the Containerfile does, and returns its path.
func build(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(dir, "bin", "lowtoggle")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-tags", "nogpu", "-o", program, "..")
	cmd.Dir, cmd.Env = packageDir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// command runs a command that must succeed, and returns its standard output.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.Output()
	if failed, ok := err.(*exec.ExitError); ok {
		t.Fatalf("%v: %v\n%s%s", cmd, err, out, failed.Stderr)
	}
	try(t, err)
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	try(t, os.WriteFile(path, []byte(text), 0o644))
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// digests returns the SHA-256 of every file in a folder.
func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	try(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		all[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return all
}
