package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/weights"
)

// operands makes what is multiplied out of sources.
type operands struct {
	readings
	dtype gemm.Type // 0: as the weights are stored
	seed  uint64
	x     source // no text: what is usual for the type

	models map[string]*weights.Model // by path
	drawn  map[shape]gemm.Matrix     // activations
}

// shape of a matrix, and the type of its elements.
type shape struct {
	dtype      weights.DType
	rows, cols int
}

// defaultTokens is M where nothing says otherwise, and that of prefill.
const defaultTokens = 8192

// The usual draws: what a trained layer's operands are like, in the scale that the type is made for.
func usualX(typ gemm.Type) source {
	if typ == gemm.INT8 {
		return usual("normal(0,32)")
	}
	return usual("normal(0,1)")
}

func usualW(typ gemm.Type) source {
	if typ == gemm.INT8 || typ == gemm.FP8 {
		return usualX(typ)
	}
	return usual("normal(0,0.02)")
}

func usual(text string) source { return source{text: text, pattern: pattern.MustParse(text)} }

func (o *operands) open(path string) (*weights.Model, error) {
	if m := o.models[path]; m != nil {
		return m, nil
	}
	m, err := openModel(path)
	if err == nil {
		o.models[path] = m
	}
	return m, err
}

// Close closes the models that were opened.
func (o *operands) Close() (err error) {
	for _, m := range o.models {
		err = errors.Join(err, m.Close())
	}
	return err
}

// layers takes a source's layers. Those of patterns have the names and shapes of like; so have, by
// default, those of another model.
func (o *operands) layers(ctx context.Context, s source, like []layer) ([]layer, error) {
	if s.path == "" {
		all := make([]layer, len(like))
		for i, l := range like {
			w, err := s.draw(ctx, l.w.DType, l.w.Rows, l.w.Cols, o.seed+uint64(i)+1)
			if err != nil {
				return nil, err
			}
			all[i] = layer{l.name, l.kind, w}
		}
		return all, nil
	}
	m, err := o.open(s.path)
	if err != nil {
		return nil, err
	}
	if s.tensors == "" && like != nil {
		return sameLayers(m, s.path, o.readings, like)
	}
	all, skipped, err := layersOf(m, o.readings, s.tensors)
	if err == nil && len(all) == 0 {
		err = nothingToMultiply(s, skipped)
	}
	return all, err
}

// typeOf the product by a layer.
func (o *operands) typeOf(l layer) (gemm.Type, error) {
	if o.dtype != 0 {
		return o.dtype, nil
	}
	typ, ok := gemm.TypeOf(l.w.DType)
	if !ok {
		return 0, fmt.Errorf("%s: no GPU multiplies %v as it is: choose a type with --dtype", l.name, l.w.DType)
	}
	return typ, nil
}

// candidate makes products of layers, each with its activations of m tokens; 0: as many as x has,
// or defaultTokens. Weights of another type are scaled as those of like are, the layers that they
// are compared with.
func (o *operands) candidate(ctx context.Context, name string, layers, like []layer, m int, streaming bool) (measure.Candidate, error) {
	c := measure.Candidate{Name: name}
	for i, l := range layers {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		typ, err := o.typeOf(l)
		if err != nil {
			return c, err
		}
		x, err := o.activations(ctx, l, m, typ)
		if err != nil {
			return c, fmt.Errorf("x of %s: %w", l.name, err)
		}
		scaled := l
		if i < len(like) {
			scaled = like[i]
		}
		w, err := l.w.Fit(typ.Operand(), scaled.w.Exponent(typ.Operand()))
		if err != nil {
			return c, fmt.Errorf("%s: %w", l.name, err)
		}
		p := gemm.Problem{M: x.Rows, N: w.Rows, K: w.Cols, Type: typ, Streaming: streaming}
		c.Products = append(c.Products, cuda.Product{Name: l.name, Problem: p, X: x, W: w})
	}
	return c, nil
}

// activations of a layer: of a pattern, the same for all layers with as many inputs, or from a file.
func (o *operands) activations(ctx context.Context, l layer, m int, typ gemm.Type) (gemm.Matrix, error) {
	d := typ.Operand()
	if o.x.path != "" {
		x, err := o.storedActivations(l.name, l.w.Cols, m)
		if err != nil {
			return x, err
		}
		return x.Fit(d, x.Exponent(d))
	}
	if m == 0 {
		m = defaultTokens
	}
	key := shape{d, m, l.w.Cols}
	if have, ok := o.drawn[key]; ok {
		return have, nil
	}
	x, err := o.xSource(typ).draw(ctx, d, m, l.w.Cols, o.seed)
	if err == nil {
		o.drawn[key] = x
	}
	return x, err
}

// xSource is --x, or what is usual for the type.
func (o *operands) xSource(typ gemm.Type) source {
	if o.x.text == "" {
		return usualX(typ)
	}
	return o.x
}

// storedActivations are a layer's from a file, as they are stored: of the tensor that is named in
// --x or like the layer, m rows of the layer's inputs; 0: all it has.
func (o *operands) storedActivations(layer string, inputs, m int) (gemm.Matrix, error) {
	name := o.x.tensors
	if name == "" {
		name = layer
	}
	file, err := o.open(o.x.path)
	if err != nil {
		return gemm.Matrix{}, err
	}
	t, ok := file.Tensor(name)
	if !ok {
		return gemm.Matrix{}, fmt.Errorf("%s has no tensor %q", o.x.path, name)
	}
	x, err := gemm.FromTensor(t, 0)
	switch {
	case err != nil:
		return x, err
	case x.Cols != inputs:
		return x, fmt.Errorf("%s: tensor %q has %d inputs, and the layer has %d", o.x.path, name, x.Cols, inputs)
	case m > x.Rows:
		return x, fmt.Errorf("%s: tensor %q has %d tokens, and %d are asked for", o.x.path, name, x.Rows, m)
	case m > 0:
		x.Data = x.Data[:len(x.Data)/x.Rows*m]
		x.Rows = m
	}
	return x, nil
}

// draw makes a matrix of a pattern.
func (s source) draw(ctx context.Context, d weights.DType, rows, cols int, seed uint64) (gemm.Matrix, error) {
	if err := s.holds(ctx, d, seed); err != nil {
		return gemm.Matrix{}, err
	}
	data, err := s.pattern.Generate(ctx, pattern.Spec{DType: d, Rows: rows, Cols: cols, Seed: seed}, runtime.GOMAXPROCS(0))
	return gemm.Matrix{DType: d, Rows: rows, Cols: cols, Data: data}, err
}
