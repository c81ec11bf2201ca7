package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestInstall installs the work tree like go install MODULE@VERSION from a tag: from a module proxy of files.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the program")
	}
	const version = "v0.98.7"
	proxy := moduleProxy(t, "..", module.Version{Path: "github.com/lowtoggle/lowtoggle", Version: version})
	bin, modules := t.TempDir(), t.TempDir()
	install := exec.Command("go", "install", "github.com/lowtoggle/lowtoggle@"+version)
	install.Dir = t.TempDir() // outside any module
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+modules, "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOWORK=off",
		"GONOSUMDB=*", "GOPROXY="+strings.Join([]string{proxy, "file://" + goEnv(t, "GOMODCACHE") + "/cache/download", goEnv(t, "GOPROXY")}, ","))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(bin, "lowtoggle"), "--version").CombinedOutput()
	if want := "lowtoggle version " + version[1:] + " ("; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

// moduleProxy writes a module proxy of one version of the module into a folder. It returns the proxy's address.
func moduleProxy(t *testing.T, folder string, m module.Version) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(dir, m.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.CreateFromDir(archive, m, folder); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{m.Version + ".mod": string(mod), m.Version + ".info": `{"Version": "` + m.Version + `"}`, "list": m.Version + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + filepath.ToSlash(root)
}

// goEnv returns a setting of the go command.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
