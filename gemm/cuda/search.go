package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// machine is where libraries may lie; tests put another in its place.
type machine struct {
	getenv func(string) string
	glob   func(pattern string) ([]string, error)
	python func() (string, error) // path of the interpreter that is used by default
}

var thisMachine = machine{os.Getenv, filepath.Glob, func() (string, error) { return exec.LookPath("python3") }}

// driverFolders and cudaFolders are patterns of folders beside the loader's own path.
func (m machine) driverFolders() []string {
	return []string{"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib"}
}

// cudaFolders names a toolkit's folders, then those that Python's packages bring.
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

// sitePackages names the folders of Python packages: of the active environment, of the default
// interpreter (a link's folder and its target's may differ), of the user and of the system.
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

// find lists, in the order to try, a file name for the loader to look up and every existing file
// of that name in the folders.
func (m machine) find(file string, folders []string) []string {
	found := []string{file}
	for _, folder := range folders {
		paths, _ := m.glob(folder + "/" + file) // the only error is a malformed pattern
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

// missing says what was looked for and where, and why what was found could not be opened.
func missing(what string, files, folders []string, refusals []error, advice string) error {
	where := fmt.Sprintf("%s (%s) was looked for on the loader's path and in %s", strings.Join(files, " or "), what, strings.Join(slices.Compact(slices.Clone(folders)), ", "))
	for _, r := range refusals {
		where += fmt.Sprintf("; %v", r)
	}
	return noGPU("%s: %s", where, advice)
}
