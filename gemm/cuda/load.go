package cuda

import (
	"fmt"
	"sync"
)

// Oldest supported versions, in the formats of cuDriverGetVersion and cublasLtGetVersion.
const (
	minDriver = 12000
	minBLAS   = 120000
)

// opener opens a shared library and binds its functions.
type opener interface {
	open(path string) (handle uintptr, err error)
	bind(handle uintptr, symbols []symbol) error
}

// load binds and initialises the driver, and then binds the newest cuBLASLt that the driver supports.
func load(o opener, m machine) (*api, error) {
	a := new(api)
	path, err := bindFirst(o, m, "NVIDIA's driver", []string{"libcuda.so.1"}, m.driverFolders(), a.driverSymbols(),
		"install the driver, or use a machine with an NVIDIA GPU")
	if err != nil {
		return nil, noGPU("%w", err)
	}
	a.libraries = append(a.libraries, path)
	if err := a.check("cuInit", a.cuInit(0)); err != nil {
		return nil, noGPU("%s: %w", a.libraries[0], err)
	}
	var driver int32
	if err := a.check("cuDriverGetVersion", a.cuDriverGetVersion(&driver)); err != nil {
		return nil, noGPU("%w", err)
	}
	if driver < minDriver {
		return nil, noGPU("the driver supports CUDA %s, but %s or later is needed: update the driver", cudaVersion(driver), cudaVersion(minDriver))
	}
	var files []string
	for major := driver / 1000; major >= minDriver/1000; major-- {
		files = append(files, fmt.Sprintf("libcublasLt.so.%d", major))
	}
	if path, err = bindFirst(o, m, "cuBLASLt of a CUDA version that the driver supports", files, m.cudaFolders(), a.blasSymbols(),
		"install the CUDA toolkit, or set CUDA_HOME to the folder of a toolkit"); err != nil {
		return nil, noGPU("%w", err)
	}
	a.libraries = append(a.libraries, path)
	if v := a.cublasLtGetVersion(); v < minBLAS {
		return nil, noGPU("%s is version %d, but %d or later is needed: update the CUDA toolkit", a.libraries[1], v, minBLAS)
	}
	a.compiler = sync.OnceValues(func() (*compiler, error) { return loadCompiler(o, m, driver) })
	a.nccl = sync.OnceValues(func() (*nccl, error) { return loadNCCL(o, m) })
	return a, nil
}

// bindFirst opens the first file that exists and exports every symbol. It returns the file's path.
func bindFirst(o opener, m machine, what string, files, folders []string, symbols []symbol, advice string) (string, error) {
	var refusals []error
	for _, file := range files {
		for i, path := range m.find(file, folders) {
			handle, err := o.open(path)
			if err == nil {
				err = o.bind(handle, symbols)
			}
			if err == nil {
				return path, nil
			}
			if i > 0 || handle != 0 { // a file that the loader cannot find may be in one of the folders
				refusals = append(refusals, err)
			}
		}
	}
	return "", missing(what, files, folders, refusals, advice)
}

// cudaVersion formats a version number: "12.4" for 12040.
func cudaVersion(v int32) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
