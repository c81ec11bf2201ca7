package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// machine is the environment in which libraries are searched. Tests replace it.
type machine struct {
	getenv func(string) string
	glob   func(pattern string) ([]string, error)
	python func() (string, error) // returns the path of the default Python interpreter
}

var thisMachine = machine{os.Getenv, filepath.Glob, func() (string, error) { return exec.LookPath("python3") }}

// driverFolders returns glob patterns of folders with the driver, in addition to the loader's path.
func (m machine) driverFolders() []string {
	return []string{"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib"}
}

// cudaFolders returns glob patterns of folders with the libraries of a toolkit, followed by folders of Python packages.
func (m machine) cudaFolders() []string {
	var roots, folders []string
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if root := m.getenv(v); root != "" {
			roots = append(roots, root)
		}
	}
	for _, root := range append(roots, "/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda") {
		folders = append(folders, root+"/lib64", root+"/targets/*/lib")
	}
	for _, site := range m.sitePackages() {
		folders = append(folders, site+"/nvidia/*/lib")
	}
	return append(folders, "/usr/lib/*-linux-gnu", "/usr/lib64")
}

// sitePackages returns glob patterns of folders of Python packages: of the active environment, of the default
// interpreter (for its path and for the target of its symbolic link), of the user and of the system.
func (m machine) sitePackages() []string {
	var prefixes, sites []string
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if p := m.getenv(v); p != "" {
			prefixes = append(prefixes, p)
		}
	}
	if python, err := m.python(); err == nil {
		prefixes = append(prefixes, filepath.Dir(filepath.Dir(python)))
		if target, err := filepath.EvalSymlinks(python); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Dir(target)))
		}
	}
	if home := m.getenv("HOME"); home != "" {
		prefixes = append(prefixes, home+"/.local")
	}
	for _, p := range append(prefixes, "/usr/local", "/usr") {
		sites = append(sites, p+"/lib/python3*/site-packages", p+"/lib/python3*/dist-packages")
	}
	return sites
}

// find returns the names to open, in order: first the bare file name, which the loader searches, and then every file of
// that name in the folders.
func (m machine) find(file string, folders []string) []string {
	found := []string{file}
	for _, folder := range folders {
		paths, _ := m.glob(folder + "/" + file) // an error means that the pattern is malformed
		slices.Sort(paths)
		slices.Reverse(paths) // the newest toolkit first
		for _, p := range paths {
			if !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return found
}

// missing returns an error with the files and folders that were tried, and the reasons why existing files could not be
// opened.
func missing(what string, files, folders []string, refusals []error, advice string) error {
	var places []string
	for _, f := range folders {
		if !slices.Contains(places, f) {
			places = append(places, f)
		}
	}
	where := fmt.Sprintf("%s (%s) was not found on the loader's path or in %s", strings.Join(files, " or "), what, strings.Join(places, ", "))
	for _, r := range refusals {
		where += fmt.Sprintf("; %v", r)
	}
	return fmt.Errorf("%s: %s", where, advice)
}
