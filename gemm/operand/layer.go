package operand

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Layer is the weight w[N,K] of a linear layer.
type Layer struct {
	Name string
	Kind string // the family's name for this kind of layer, as in [arch.Layout.Kind]; empty for patterns
	W    *Matrix
	// Format is the format of a quantised layer, or of the quantised layer whose codes a pattern replaces; nil for
	// other layers. If Format is set, W is the matrix by which kernels multiply.
	Format *quant.Format
}

// Linear returns all linear layers of an open model in the file's order, and the names of layers that cannot be
// multiplied. The error is that of resolving the model's architecture. The caller closes the model.
func (s *Set) Linear(m *weights.Model) (layers []Layer, skipped []string, err error) {
	of, err := s.resolved(Of(m))
	if err != nil {
		return nil, nil, err
	}
	return of.matching("")
}

// Same returns the layers of another open model that have the same names as the given layers. The error is a
// [NotFoundError] if the model lacks any of them. The caller closes the model.
func (s *Set) Same(m *weights.Model, layers []Layer) ([]Layer, error) {
	of, err := s.resolved(Of(m))
	if err != nil {
		return nil, err
	}
	return of.named(m.Dir, namesOf(layers))
}

func namesOf(layers []Layer) (names []string) {
	for _, l := range layers {
		names = append(names, l.Name)
	}
	return names
}

// layers returns the layers of every source. Patterns get names and shapes of the reference's layers. "PATH:" of
// another model gets their names. shapes are the reference's layers.
func (s *Set) layers(ctx context.Context, sources []Source) (all [][]Layer, shapes []Layer, err error) {
	if slices.ContainsFunc(sources, func(s Source) bool { return s.Path == "" && s.Pattern == pattern.Pattern{} }) {
		return nil, nil, errNoSource
	}
	at := reference(sources)
	if shapes, err = s.shapes(sources, at); err != nil {
		return nil, nil, err
	}
	for i, src := range sources {
		layers := shapes
		switch {
		case src.Path == "":
			layers, err = s.draw(ctx, src, shapes)
		case i != at:
			layers, err = s.stored(src, shapes)
		}
		if err != nil {
			return nil, nil, err
		}
		all = append(all, layers)
	}
	return all, shapes, nil
}

// reference returns the index of the source whose shapes patterns get: the first source from a file, or else the first
// pattern that begins with a tensor. It returns -1 if no source has a shape.
func reference(sources []Source) int {
	if i := slices.IndexFunc(sources, func(s Source) bool { return s.Path != "" }); i >= 0 {
		return i
	}
	return slices.IndexFunc(sources, Source.HasShape)
}

// shapes returns the layers of the reference. If the reference is not a file, the layers have no values.
func (s *Set) shapes(sources []Source, at int) ([]Layer, error) {
	o := s.options
	if at < 0 {
		typ := o.Type
		if typ == 0 {
			typ = arith.BF16
		}
		n, k := o.N, o.K
		if n == 0 {
			n = DefaultSize
		}
		if k == 0 {
			k = DefaultSize
		}
		return []Layer{{Name: "w", W: &Matrix{DType: typ.Operand(), Rows: n, Cols: k}}}, nil
	}
	src := sources[at]
	all, err := s.shaped(src)
	if err != nil || o.N == 0 || len(all) == 1 && all[0].W.Rows == o.N && all[0].W.Cols == o.K {
		return all, err
	}
	what := fmt.Sprintf("1 layer with N=%d, K=%d", all[0].W.Rows, all[0].W.Cols)
	if len(all) > 1 {
		what = fmt.Sprintf("%d layers, the first with N=%d, K=%d", len(all), all[0].W.Rows, all[0].W.Cols)
	}
	return nil, &ShapeError{fmt.Sprintf("%s has %s: give M only", src.Text, what)}
}

// shaped returns the layers of a source with a shape.
func (s *Set) shaped(src Source) ([]Layer, error) {
	if src.Path != "" {
		return s.stored(src, nil)
	}
	file, name, _ := src.Pattern.Tensor()
	m, err := s.open(Source{Path: file})
	if err != nil {
		return nil, err
	}
	t, ok := m.Tensor(name)
	if !ok {
		return nil, noTensor(file, name)
	}
	w := &Matrix{DType: t.DType}
	w.Rows, w.Cols = t.Matrix()
	for step := range strings.SplitSeq(src.Pattern.String(), " | ") {
		if step == "transpose" {
			w.Rows, w.Cols = w.Cols, w.Rows
		}
	}
	if s.options.Type != 0 {
		w.DType = s.options.Type.Operand()
	}
	return []Layer{{Name: name, W: w}}, nil
}

// draw returns layers with a pattern's values in the types and shapes of the layers in like.
func (s *Set) draw(ctx context.Context, src Source, like []Layer) ([]Layer, error) {
	all := make([]Layer, len(like))
	for i, l := range like {
		if _, ok := l.W.DType.Format(); !ok {
			return nil, fmt.Errorf("layer %s: a pattern cannot replace weights of type %s: choose a layer in BF16, F16, F32, F8_E4M3, F8_E5M2 or I8", l.Name, l.W.DType)
		}
		spec := pattern.Spec{DType: l.W.DType, Rows: l.W.Rows, Cols: l.W.Cols, Seed: s.options.Seed + uint64(i) + 1}
		if err := src.checkRange(ctx, spec.DType, spec.Seed); err != nil {
			return nil, err
		}
		all[i] = Layer{Name: l.Name, Kind: l.Kind, W: newDrawn(src, spec)}
		if l.Format != nil && l.W.DType != weights.BF16 {
			all[i].Format = l.Format // the pattern replaces the codes
		}
	}
	return all, nil
}

// stored returns the layers of a file that a source names. If the source names only the file, it returns the layers
// with the names of like, or all linear layers. It reads no values.
func (s *Set) stored(src Source, like []Layer) ([]Layer, error) {
	m, err := s.resolved(src)
	if err != nil {
		return nil, err
	}
	if src.Tensors == "" && like != nil {
		return m.named(src.Path, namesOf(like))
	}
	if m.has(src.Tensors) {
		return m.named(src.Path, []string{src.Tensors})
	}
	all, skipped, err := m.matching(src.Tensors)
	if err == nil && len(all) == 0 {
		err = noLayers(src, skipped, m.quantised)
	}
	return all, err
}

// has reports whether a tensor or quantised layer has a name.
func (m *model) has(name string) bool {
	_, ok := m.Tensor(name)
	return ok || m.coded(name) != nil
}

// storedIn returns the name of the quantised weight to which a tensor belongs, if the weight's codes can be multiplied.
func (m *model) storedIn(tensor string) string {
	for _, w := range m.quantised.Weights {
		if m.coded(w.Name) != nil && slices.ContainsFunc(w.Tensors, func(t quant.Stored) bool { return t.Name == tensor }) {
			return w.Name
		}
	}
	return ""
}

// named returns the layers with the given names.
func (m *model) named(path string, names []string) (all []Layer, err error) {
	for _, name := range names {
		if c := m.coded(name); c != nil {
			all = append(all, m.codedLayer(name, c))
			continue
		}
		t, ok := m.Tensor(name)
		if !ok {
			return nil, noTensor(path, name)
		}
		l, err := m.layer(t)
		if w := m.storedIn(name); err != nil && w != "" {
			return nil, fmt.Errorf("%w; the tensor is part of the quantised weight %s: give the name of this weight", err, w)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// matching returns the linear layers whose names match wildcards, or all if wildcards is empty, and the names of layers
// that cannot be multiplied. Without Options.Quantised, quantised layers are in neither list.
func (m *model) matching(wildcards string) (all []Layer, skipped []string, err error) {
	matches := func(name string) bool {
		ok, _ := path.Match(wildcards, name)
		return ok || wildcards == ""
	}
	for _, w := range m.weights.All {
		switch {
		case w.Adapter || !matches(w.Name):
		case w.Quantised != nil:
			if m.codes && m.layout.IsLinearWeight(w.Quantised) {
				for name, c := range codedOf(w.Quantised) {
					all = append(all, m.codedLayer(name, c))
				}
			}
		case m.quantised.Holds(w.Name) && !m.takesPlain(w):
		case m.quantised.Holds(w.Name) || m.layout.IsLinear(w.Info()):
			if l, err := m.layer(w.Parts[0].Tensor); err == nil {
				all = append(all, l)
			} else {
				skipped = append(skipped, w.Name)
			}
		}
	}
	if m.codes {
		for _, w := range m.quantised.Weights {
			if !w.Plain() && w.CanRead() != nil && matches(w.Name) {
				skipped = append(skipped, w.Name)
			}
		}
	}
	return all, skipped, err
}

// takesPlain reports whether a weight is used although the config declares it as quantised, because it is stored
// unquantised.
func (m *model) takesPlain(w *quant.Weight) bool {
	q, ok := m.quantised.Weight(w.Name)
	return ok && q.Plain() && m.codes && m.layout.IsLinearWeight(q)
}

func (m *model) layer(t weights.Tensor) (Layer, error) {
	w, err := gemm.FromTensor(t, 0) // FromTensor copies nothing here
	if err != nil {
		return Layer{}, err
	}
	return Layer{Name: t.Name, Kind: m.layout.Kind(t.Name), W: newStored(w, m.layout.OutAxis(t.Name) == 1, t.File)}, nil
}

// noLayers returns the error of a source without layers.
func noLayers(src Source, skipped []string, q *quant.Description) error {
	where, text := src.Text, ""
	switch {
	case len(skipped) > 0 && src.Tensors != "":
		text = fmt.Sprintf("none of the layers that match %q can be multiplied (%s)", src.Tensors, beginning(skipped))
	case len(skipped) > 0:
		where, text = src.Path, fmt.Sprintf("none of the model's linear layers can be multiplied (%s)", beginning(skipped))
	case src.Tensors != "":
		text = fmt.Sprintf("no tensor or linear layer matches %q", src.Tensors)
	default:
		where, text = src.Path, "the model has no linear layers"
	}
	if q.Any() {
		text += "; the checkpoint is quantised (" + q.Formats() + ")"
	}
	return &NotFoundError{src.Path, where + ": " + text}
}

// beginning lists at most three names, and the number of the others.
func beginning(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
