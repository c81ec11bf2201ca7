//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"fmt"
	"sync"

	"github.com/ebitengine/purego"
)

// libraries opens the libraries once per process, because a driver must not be unloaded.
var libraries = sync.OnceValues(func() (*api, error) { return load(loader{}, thisMachine) })

// loader is the system's dynamic loader.
type loader struct{}

func (loader) open(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// bind looks up every symbol and sets the symbol's field to call it.
func (loader) bind(handle uintptr, symbols []symbol) error {
	for _, s := range symbols {
		address, err := purego.Dlsym(handle, s.name)
		if err != nil {
			return err
		}
		if err := register(s, address); err != nil {
			return err
		}
	}
	return nil
}

// register binds a symbol. It returns an error where purego would panic, for a function type that it cannot call.
func register(s symbol, address uintptr) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", s.name, r)
		}
	}()
	purego.RegisterFunc(s.function, address)
	return nil
}
