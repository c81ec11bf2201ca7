package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pretend returns a machine with the given files and environment below a temporary root, which stands
// for /.
func pretend(t *testing.T, env map[string]string, files ...string) (m machine, at func(string) string) {
	root := t.TempDir()
	at = func(path string) string { return root + path }
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(at(f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(f), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m = machine{
		getenv: func(name string) string { return env[name] },
		glob: func(pattern string) ([]string, error) {
			found, err := filepath.Glob(at(pattern))
			for i := range found {
				found[i] = strings.TrimPrefix(found[i], root)
			}
			return found, err
		},
		python: func() (string, error) { return "", errors.New("none") },
	}
	return m, at
}

func TestFindPlaces(t *testing.T) {
	const file = "libcublasLt.so.13"
	for _, c := range []struct {
		name string
		env  map[string]string
		path string
	}{
		{"CUDA_HOME", map[string]string{"CUDA_HOME": "/my/cuda"}, "/my/cuda/lib64/" + file},
		{"CUDA_PATH, by target", map[string]string{"CUDA_PATH": "/my/cuda"}, "/my/cuda/targets/sbsa-linux/lib/" + file},
		{"toolkit", nil, "/usr/local/cuda/lib64/" + file},
		{"toolkit of a version", nil, "/usr/local/cuda-13.0/targets/x86_64-linux/lib/" + file},
		{"virtual environment", map[string]string{"VIRTUAL_ENV": "/venv"}, "/venv/lib/python3.12/site-packages/nvidia/cu13/lib/" + file},
		{"conda", map[string]string{"CONDA_PREFIX": "/conda"}, "/conda/lib/python3.11/site-packages/nvidia/cublas/lib/" + file},
		{"user's Python", map[string]string{"HOME": "/home/me"}, "/home/me/.local/lib/python3.13/site-packages/nvidia/cublas/lib/" + file},
		{"system's Python", nil, "/usr/local/lib/python3.12/dist-packages/nvidia/cu13/lib/" + file},
		{"distribution", nil, "/usr/lib/x86_64-linux-gnu/" + file},
	} {
		m, _ := pretend(t, c.env, c.path, "/elsewhere/"+file)
		if got := m.find(file, m.cudaFolders()); !slices.Equal(got, []string{file, c.path}) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestFindFollowsTheInterpreter(t *testing.T) {
	const file = "libcublasLt.so.12"
	m, _ := pretend(t, nil, "/opt/torch/.venv/lib/python3.12/site-packages/nvidia/cublas/lib/"+file)
	m.python = func() (string, error) { return "/opt/torch/.venv/bin/python3", nil }
	if got := m.find(file, m.cudaFolders()); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// TestMissingNamesFoldersOnce: an error names a folder once, even if it was found in several ways.
func TestMissingNamesFoldersOnce(t *testing.T) {
	m, _ := pretend(t, map[string]string{"CUDA_HOME": "/usr/local/cuda", "VIRTUAL_ENV": "/venv"})
	m.python = func() (string, error) { return "/venv/bin/python3", nil }
	text := missing("a library", []string{"lib.so"}, m.cudaFolders(), nil, "install it").Error()
	for _, folder := range []string{" /usr/local/cuda/lib64,", " /venv/lib/python3*/site-packages/nvidia/*/lib,"} {
		if strings.Count(text, folder) != 1 {
			t.Errorf("%d times %q in %s", strings.Count(text, folder), folder, text)
		}
	}
}

func TestFindPrefersNewerToolkits(t *testing.T) {
	const file = "libcublasLt.so.12"
	m, _ := pretend(t, map[string]string{"CUDA_HOME": "/mine"}, "/usr/local/cuda-12.2/lib64/"+file, "/usr/local/cuda-12.6/lib64/"+file, "/mine/lib64/"+file)
	want := []string{file, "/mine/lib64/" + file, "/usr/local/cuda-12.6/lib64/" + file, "/usr/local/cuda-12.2/lib64/" + file}
	if got := m.find(file, m.cudaFolders()); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
