package cli

import (
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

// source is where the values of an operand come from: random draws (a constant is drawn with no
// deviation), or tensors of a file.
type source struct {
	text        string
	mean, sigma float64
	path        string // of the model; "" for draws
	tensors     string // a name, a pattern, or "" for all linear layers
}

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
			_, err = path.Match(s.tensors, "")
			return s, err
		}
	}
	if file, _, tensor := strings.Cut(text, ":"); tensor {
		return s, fmt.Errorf("%s: there is no such file or folder", file)
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

// draw makes a matrix of random values; draws with the same seed differ in scale and mean alone.
func (s source) draw(d weights.DType, rows, cols int, seed uint64) gemm.Matrix {
	return gemm.Normal(d, rows, cols, s.mean, s.sigma, seed)
}

// layer is a linear layer to multiply by.
type layer struct {
	name, kind string
	w          gemm.Matrix
}

// layersOf takes, in the file's order, the one tensor of that name, or the linear layers that a
// pattern such as *.up_proj.weight matches; "" matches all.
func layersOf(m *weights.Model, o readings, pattern string) ([]layer, error) {
	layout, _, err := transform.Resolve(m, o.family)
	if err != nil {
		return nil, err
	}
	take := func(t weights.Tensor) (layer, error) {
		outAxis := 0
		if layout != nil && layout.Claims[t.Name] != nil {
			outAxis = layout.Claims[t.Name].OutAxis
		}
		w, err := gemm.FromTensor(t, outAxis)
		return layer{t.Name, kindOf(layout, t.Name), w}, err
	}
	if t, ok := m.Tensor(pattern); ok {
		l, err := take(t)
		return []layer{l}, err
	}
	var all []layer
	err = m.Each(func(t weights.Tensor) error {
		if ok, _ := path.Match(pattern, t.Name); !ok && pattern != "" || !transform.Linear(layout, t.Info) {
			return nil
		}
		l, err := take(t)
		all = append(all, l)
		return err
	})
	if err == nil && len(all) == 0 {
		what := "linear layers"
		if pattern != "" {
			what = fmt.Sprintf("tensor or linear layer that matches %q", pattern)
		}
		err = fmt.Errorf("%s has no %s; lowtoggle inspect %s --tensors lists what there is", m.Dir, what, m.Dir)
	}
	return all, err
}
