package cli

import (
	"fmt"
	"path"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// layer is a linear layer to multiply by.
type layer struct {
	name, kind string
	w          gemm.Matrix
}

// layersOf takes, in the file's order, the one tensor of that name, or the linear layers that a
// pattern such as *.up_proj.weight matches; "" matches all. Layers that are no matrices of numbers
// that can be multiplied are left out and named.
func layersOf(m *weights.Model, o readings, pattern string) (all []layer, skipped []string, err error) {
	layout, err := arch.ResolveIfKnown(m, o.family)
	if err != nil {
		return nil, nil, err
	}
	if t, ok := m.Tensor(pattern); ok {
		l, err := layerOf(layout, t)
		return []layer{l}, nil, err
	}
	err = m.Each(func(t weights.Tensor) error {
		if ok, _ := path.Match(pattern, t.Name); !ok && pattern != "" || !layout.IsLinear(t.Info) {
			return nil
		}
		if l, err := layerOf(layout, t); err == nil {
			all = append(all, l)
		} else {
			skipped = append(skipped, t.Name)
		}
		return nil
	})
	return all, skipped, err
}

// sameLayers takes the layers of another model that have the same names.
func sameLayers(m *weights.Model, path string, o readings, like []layer) ([]layer, error) {
	layout, err := arch.ResolveIfKnown(m, o.family)
	if err != nil {
		return nil, err
	}
	all := make([]layer, len(like))
	for i, l := range like {
		t, ok := m.Tensor(l.name)
		if !ok {
			return nil, fmt.Errorf("%s has no tensor %q; lowtoggle inspect --tensors lists what a model has", path, l.name)
		}
		if all[i], err = layerOf(layout, t); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func layerOf(layout *arch.Layout, t weights.Tensor) (layer, error) {
	w, err := gemm.FromTensor(t, layout.OutAxis(t.Name))
	return layer{t.Name, layout.Kind(t.Name), w}, err
}

// nothingToMultiply says why a source has no layers.
func nothingToMultiply(s source, skipped []string) error {
	list := term.CommandLine("inspect", s.path, "--tensors")
	switch {
	case len(skipped) > 0:
		return fmt.Errorf("%s: none of its layers is a matrix of numbers that can be multiplied (%s); see %s", s.text, strings.Join(skipped, ", "), list)
	case s.tensors != "":
		return fmt.Errorf("%s: no tensor or linear layer matches %q; see %s", s.text, s.tensors, list)
	}
	return fmt.Errorf("%s: there are no linear layers in it; see %s", s.text, list)
}
