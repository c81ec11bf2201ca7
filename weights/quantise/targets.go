package quantise

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Targets are the weights of a model that a format quantises, and the modules that stay unquantised.
type Targets struct {
	Weights map[string]bool // the quantised weights, by name
	// Ignore names the linear modules that stay unquantised: heads, routers, and modules that the family does not list.
	Ignore []string
	// Left are the weights that a format cannot hold; see [Targets.Fit].
	Left []string
}

// TargetsOf returns the linear layers within a model's blocks, except routers. tensors are the tensors of an unquantised
// checkpoint with the given layout. leave returns true for further weights that stay unquantised; nil: none. A layer stored
// as inputs × outputs is an error, because no format supports it. Layers that runtimes fuse must all be quantised or all stay
// unquantised; otherwise TargetsOf returns an error.
func TargetsOf(l *arch.Layout, f *arch.Family, tensors []weights.Info, leave func(name string) bool) (*Targets, error) {
	if l == nil || f == nil {
		return nil, errors.New("a layout or its family is missing: give both, because they determine the weights to quantise")
	}
	t := &Targets{Weights: map[string]bool{}}
	ignored := map[string]bool{}
	left := 0 // linear layers that only leave excludes
	for _, info := range tensors {
		module, err := moduleOf(info.Name)
		if err != nil || len(info.Shape) != 2 {
			continue
		}
		c := l.Claims[info.Name]
		switch {
		case c != nil && c.Role != arch.Linear:
		case c == nil || c.Layer < 0 || arch.IsRouter(info.Name):
			ignored[strings.TrimSuffix(module, ".")] = true
		case leave != nil && leave(info.Name):
			ignored[strings.TrimSuffix(module, ".")] = true
			left++
		case c.OutAxis != 0:
			return nil, fmt.Errorf("%s is stored as inputs × outputs, but all quantised formats store outputs × inputs: leave this weight unquantised", info.Name)
		case !slices.Contains([]weights.DType{weights.BF16, weights.F16, weights.F32}, info.DType):
			return nil, fmt.Errorf("%s is %s, but only BF16, F16 and F32 weights can be quantised: leave this weight unquantised", info.Name, info.DType)
		default:
			t.Weights[info.Name] = true
		}
	}
	// A head that shares the embedding's tensor is a module, too.
	for _, listed := range f.Tensors() {
		name := strings.TrimPrefix(strings.TrimPrefix(listed.Name, "{root}"), "{prefix}")
		if module, err := moduleOf(name); err == nil && listed.Role == arch.Linear && strings.Contains(" "+listed.When+" ", " tied ") {
			ignored[strings.TrimSuffix(module, ".")] = true
		}
	}
	for module := range ignored {
		t.Ignore = append(t.Ignore, module)
	}
	slices.Sort(t.Ignore)
	if leave != nil {
		if err := t.checkFused(); err != nil {
			return nil, err
		}
	}
	if len(t.Weights) == 0 && left > 0 {
		return nil, fmt.Errorf("the patterns of \"ignore\" and \"only\" exclude every linear layer that can be quantised (layers: %d): change the patterns", left)
	}
	if len(t.Weights) == 0 {
		return nil, fmt.Errorf("family %s has no linear layers to quantise", l.Family)
	}
	return t, nil
}

// checkFused returns an error if a module stays unquantised while a weight that runtimes fuse with it is quantised.
func (t *Targets) checkFused() error {
	stays := map[string]string{}
	for _, module := range t.Ignore {
		stays[fusedWith(module)] = module
	}
	for _, name := range slices.Sorted(maps.Keys(t.Weights)) {
		if module := stays[fusedWith(name)]; module != "" {
			return fmt.Errorf("%s would be quantised and %s not, but runtimes fuse the two: quantise both or neither", name, module)
		}
	}
	return nil
}

// moduleOf returns the name of a weight without its last part: "model.layers.0.mlp.up_proj.".
func moduleOf(weight string) (string, error) {
	module, ok := strings.CutSuffix(weight, "weight")
	if !ok || module == "" || !strings.HasSuffix(module, ".") {
		return "", fmt.Errorf("%s is not named as the weight of a module", weight)
	}
	return module, nil
}
