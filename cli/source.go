package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// source is where the values of an operand come from: random draws (a constant is drawn with no
// deviation), or tensors of a file.
type source struct {
	text        string
	mean, sigma float64
	path        string // of the model; "" for draws
	tensors     string // a name, a pattern, or "" for all linear layers
}

// errNoSuchFile is about the world, not the command line.
var errNoSuchFile = errors.New("there is no such file or folder")

// parseSource reads normal(MEAN,SIGMA), const(VALUE), zeros, or PATH:TENSOR.
func parseSource(text string) (source, error) {
	s := source{text: text}
	name, inner, called := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	called = called && strings.HasSuffix(text, ")")
	switch {
	case text == "zeros":
		return s, nil
	case called && name == "normal":
		v, err := numbers(inner, 2)
		if err == nil && v[1] < 0 {
			err = fmt.Errorf("a negative deviation")
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w; write it as normal(MEAN,SIGMA)", text, err)
		}
		s.mean, s.sigma = v[0], v[1]
		return s, nil
	case called && name == "const":
		v, err := numbers(inner, 1)
		if err != nil {
			return s, fmt.Errorf("%s: %w; write it as const(VALUE)", text, err)
		}
		s.mean = v[0]
		return s, nil
	}
	// A colon may belong to the path: the first one behind something that exists counts.
	for i, c := range text {
		if c != ':' {
			continue
		}
		if _, err := os.Stat(text[:i]); err == nil {
			s.path, s.tensors = text[:i], text[i+1:]
			if _, err := path.Match(s.tensors, ""); err != nil {
				return s, fmt.Errorf("%s: %q is no pattern: [ begins a set of characters and ] must end it", text, s.tensors)
			}
			return s, nil
		}
	}
	if file, _, tensor := strings.Cut(text, ":"); tensor && file != "" {
		return s, fmt.Errorf("%s: %w", file, errNoSuchFile)
	}
	if _, err := os.Stat(text); err == nil {
		return s, fmt.Errorf("%s: which tensor? write %s:NAME, or %s: for all its linear layers", text, text, text)
	}
	return s, fmt.Errorf("%q is neither normal(MEAN,SIGMA), const(VALUE) nor zeros, nor a tensor as in MODEL:NAME (MODEL: alone means all its linear layers)", text)
}

// numbers reads n finite numbers with commas between them.
func numbers(text string, n int) ([]float64, error) {
	parts := strings.Split(text, ",")
	if len(parts) != n {
		return nil, fmt.Errorf("%s, not %d", plural(len(parts), "number", "numbers"), n)
	}
	var list []float64
	for _, p := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%q is not a number", p)
		}
		list = append(list, v)
	}
	return list, nil
}

// layer is a linear layer to multiply by.
type layer struct {
	name, kind string
	w          gemm.Matrix
}

// layersOf takes, in the file's order, the one tensor of that name, or the linear layers that a
// pattern such as *.up_proj.weight matches; "" matches all. Layers that are no matrices of numbers
// that can be multiplied are left out and named.
func layersOf(m *weights.Model, o readings, pattern string) (all []layer, skipped []string, err error) {
	layout, _, err := transform.Resolve(m, o.family)
	if err != nil {
		return nil, nil, err
	}
	if t, ok := m.Tensor(pattern); ok {
		l, err := layerOf(layout, t)
		return []layer{l}, nil, err
	}
	err = m.Each(func(t weights.Tensor) error {
		if ok, _ := path.Match(pattern, t.Name); !ok && pattern != "" || !transform.Linear(layout, t.Info) {
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
	layout, _, err := transform.Resolve(m, o.family)
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
	outAxis := 0
	if layout != nil && layout.Claims[t.Name] != nil {
		outAxis = layout.Claims[t.Name].OutAxis
	}
	w, err := gemm.FromTensor(t, outAxis)
	return layer{t.Name, kindOf(layout, t.Name), w}, err
}

// nothingToMultiply says why a source has no layers.
func nothingToMultiply(s source, skipped []string) error {
	list := command("inspect", s.path, "--tensors")
	switch {
	case len(skipped) > 0:
		return fmt.Errorf("%s: none of its layers is a matrix of numbers that can be multiplied (%s); see %s", s.text, strings.Join(skipped, ", "), list)
	case s.tensors != "":
		return fmt.Errorf("%s: no tensor or linear layer matches %q; see %s", s.text, s.tensors, list)
	}
	return fmt.Errorf("%s: there are no linear layers in it; see %s", s.text, list)
}
