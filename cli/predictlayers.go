package cli

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// placed is a layer's weights w[N,K] where they lie.
type placed struct {
	name string
	blocks
}

// like gives the layers whose names and shapes patterns take: those of the reference, or one of
// --shape.
func (f *forecast) like() ([]placed, error) {
	i := f.reference()
	if i < 0 {
		return []placed{{"w", blocks{dtype: f.shape.Type.Operand(), rows: f.shape.N, cols: f.shape.K}}}, nil
	}
	s := f.sources[i]
	all, err := f.likeFile(s)
	if p := f.shape; err == nil && p != nil && (len(all) != 1 || all[0].rows != p.N || all[0].cols != p.K) {
		return nil, usagef("--shape: %s is %s with N=%d, K=%d; give M alone", s.text, term.Plural(len(all), "layer", "layers, the first"), all[0].rows, all[0].cols)
	}
	return all, err
}

func (f *forecast) likeFile(s source) ([]placed, error) {
	if s.path != "" {
		return f.stored(s, nil)
	}
	file, name, _ := s.pattern.Tensor()
	m, err := f.open(file)
	if err != nil {
		return nil, err
	}
	t, ok := m.Tensor(name)
	if !ok {
		return nil, noTensor(file, name)
	}
	l := placed{name, blocks{dtype: t.DType}}
	l.rows, l.cols = t.Matrix()
	for step := range strings.SplitSeq(s.pattern.String(), " | ") {
		if step == "transpose" {
			l.rows, l.cols = l.cols, l.rows
		}
	}
	if f.dtype != 0 {
		l.dtype = f.dtype.Operand()
	}
	return []placed{l}, nil
}

// take gives a source's layers: patterns and, by default, other models have those of like.
func (f *forecast) take(ctx context.Context, s source, like []placed) ([]placed, error) {
	if s.path != "" {
		return f.stored(s, like)
	}
	all := make([]placed, len(like))
	for i, l := range like {
		if _, ok := l.dtype.Format(); !ok {
			return nil, fmt.Errorf("%s: %s is of a type that is not multiplied", l.name, l.dtype)
		}
		spec := pattern.Spec{DType: l.dtype, Rows: l.rows, Cols: l.cols, Seed: f.seed + uint64(i) + 1}
		if err := s.holds(ctx, spec.DType, spec.Seed); err != nil {
			return nil, err
		}
		b, err := patternBlocks(s, spec)
		if err != nil {
			return nil, err
		}
		all[i] = placed{l.name, b}
	}
	return all, nil
}

// stored gives the layers of a file that a source names, as layersOf and sameLayers do, without
// reading any.
func (f *forecast) stored(s source, like []placed) (all []placed, err error) {
	m, err := f.open(s.path)
	if err != nil {
		return nil, err
	}
	layout, err := arch.ResolveIfKnown(m, f.family)
	if err != nil {
		return nil, err
	}
	names := []string{s.tensors}
	switch i := f.reference(); {
	case s.tensors == "" && like != nil && f.sources[i].path != "":
		names = nil
		for _, l := range like {
			names = append(names, l.name)
		}
	case s.tensors == "" || !has(m, s.tensors):
		return f.matching(m, layout, s)
	}
	for _, name := range names {
		t, ok := m.Tensor(name)
		if !ok {
			return nil, noTensor(s.path, name)
		}
		l, err := place(layout, t)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// matching gives the linear layers that a source's wildcards match, all where it has none.
func (f *forecast) matching(m *weights.Model, layout *arch.Layout, s source) (all []placed, err error) {
	var skipped []string
	err = m.Each(func(t weights.Tensor) error {
		if ok, _ := path.Match(s.tensors, t.Name); !ok && s.tensors != "" || !layout.IsLinear(t.Info) {
			return nil
		}
		if l, err := place(layout, t); err == nil {
			all = append(all, l)
		} else {
			skipped = append(skipped, t.Name)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = nothingToMultiply(s, skipped)
	}
	return all, err
}

func place(layout *arch.Layout, t weights.Tensor) (placed, error) {
	w, err := gemm.FromTensor(t, 0) // which copies nothing
	if err != nil {
		return placed{}, err
	}
	return placed{t.Name, matrixBlocks(w, layout.OutAxis(t.Name) == 1, t.File)}, nil
}

func has(m *weights.Model, tensor string) bool {
	_, ok := m.Tensor(tensor)
	return ok
}

func noTensor(path, name string) error {
	return fmt.Errorf("%s has no tensor %q; %s lists what it has", path, name, term.CommandLine("inspect", path, "--tensors"))
}
