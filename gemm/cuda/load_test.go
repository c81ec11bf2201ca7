package cuda

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fakeLoader knows some paths, and binds functions of a fake card unless they are missing.
type fakeLoader struct {
	paths    map[string]bool
	api      *api
	compiler *compiler
	missing  string
}

func (l fakeLoader) open(path string) (uintptr, error) {
	if !l.paths[path] {
		return 0, fmt.Errorf("%s: cannot open shared object file", path)
	}
	return 1, nil
}

func (l fakeLoader) bind(_ uintptr, symbols []symbol) error {
	have := map[string]reflect.Value{}
	for _, s := range slices.Concat(l.api.driverSymbols(), l.api.blasSymbols(), l.compiler.symbols()) {
		have[s.name] = reflect.ValueOf(s.function).Elem()
	}
	for _, s := range symbols {
		if s.name == l.missing {
			return fmt.Errorf("undefined symbol: %s", s.name)
		}
		reflect.ValueOf(s.function).Elem().Set(have[s.name])
	}
	return nil
}

func TestLoad(t *testing.T) {
	const driver, blas12, blas13 = "libcuda.so.1", "libcublasLt.so.12", "/usr/local/cuda-13.0/lib64/libcublasLt.so.13"
	noDevice := func(a *api) { a.cuInit = func(uint32) result { return 100 } }
	driverVersion := func(v int32) func(*api) {
		return func(a *api) { a.cuDriverGetVersion = func(p *int32) result { *p = v; return 0 } }
	}
	for _, c := range []struct {
		name    string
		paths   []string
		missing string
		change  func(*api)
		want    []string // parts of the error; none: success
		blas    string
	}{
		{name: "newest cuBLASLt", paths: []string{driver, blas12, blas13}, blas: blas13},
		{name: "a driver for CUDA 12 takes 12", paths: []string{driver, blas12, blas13}, change: driverVersion(12040), blas: blas12},
		{name: "no driver", want: []string{"libcuda.so.1 (NVIDIA's driver)", "/usr/local/nvidia/lib64", "install the driver"}},
		{name: "no device", paths: []string{driver}, change: noDevice, want: []string{"cuInit: PLANTED (100)"}},
		{name: "old driver", paths: []string{driver}, change: driverVersion(11080), want: []string{"supports CUDA 11.8, but 12.0 or later", "update the driver"}},
		{name: "odd driver", paths: []string{driver}, missing: "cuGraphLaunch", want: []string{"undefined symbol: cuGraphLaunch"}},
		{name: "no cuBLASLt", paths: []string{driver}, want: []string{"libcublasLt.so.13 or libcublasLt.so.12", "/usr/local/cuda/lib64", "set CUDA_HOME"}},
		{name: "broken cuBLASLt", paths: []string{driver, blas13}, missing: "cublasLtMatmul", want: []string{"undefined symbol: cublasLtMatmul"}},
		{name: "old cuBLASLt", paths: []string{driver, blas12}, change: func(a *api) { a.cublasLtGetVersion = func() uint64 { return 111003 } }, want: []string{"is version 111003, but 120000 or later"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := pretend(t, nil, blas13)
			card := newCard(t)
			l := fakeLoader{map[string]bool{}, card.api(), card.nvrtc.functions(), c.missing}
			for _, p := range c.paths {
				l.paths[p] = true
			}
			if c.change != nil {
				c.change(l.api)
			}
			a, err := load(l, m)
			if len(c.want) == 0 {
				if err != nil || len(a.libraries) != 2 || a.libraries[1] != c.blas {
					t.Fatal(a, err)
				}
				return
			}
			if !errors.Is(err, ErrNoGPU) {
				t.Fatalf("%v is no ErrNoGPU", err)
			}
			for _, w := range append(c.want, "no usable NVIDIA GPU: ") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v\ndoes not say %q", err, w)
				}
			}
		})
	}
}

func TestOpenNamesTheIndex(t *testing.T) {
	c := newCard(t)
	_, err := open(c.api(), 3, false)
	if !errors.Is(err, ErrNoGPU) || !strings.Contains(err.Error(), "there is no GPU 3: CUDA reports 1") {
		t.Error(err)
	}
	c.leaks()
}
