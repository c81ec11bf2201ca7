package cli

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/weights"
)

// operands makes what is multiplied out of sources.
type operands struct {
	readings
	dtype gemm.Type // 0: as the weights are stored
	m     int       // tokens; 0: as many as x has, or defaultTokens
	seed  uint64
	x     source
	cold  bool // read the weights from memory

	models map[string]*weights.Model // by path
	drawn  map[shape]gemm.Matrix     // activations
}

// shape of a matrix, and the type of its elements.
type shape struct {
	dtype      weights.DType
	rows, cols int
}

// coldBytes is what a layer's weights come to at least when they are read from memory: 8 µs of an
// H200's memory. Smaller layers are stacked, or launching them would be most of what is measured.
const coldBytes = 32 << 20

// defaultTokens is M where nothing says otherwise, and that of prefill.
const defaultTokens = 8192

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

// layers takes a source's layers. Those of draws have the names and shapes of like; so have, by
// default, those of another model.
func (o *operands) layers(s source, like []layer) ([]layer, error) {
	if s.path == "" {
		var all []layer
		for i, l := range like {
			l.w = s.draw(l.w.DType, l.w.Rows, l.w.Cols, o.seed+uint64(i)+1)
			all = append(all, l)
		}
		return all, nil
	}
	m, err := o.open(s.path)
	if err != nil {
		return nil, err
	}
	if s.tensors != "" || like == nil {
		return layersOf(m, o.readings, s.tensors)
	}
	var all []layer
	for _, l := range like {
		same, err := layersOf(m, o.readings, l.name)
		if err != nil {
			return nil, err
		}
		all = append(all, same...)
	}
	return all, nil
}

// candidate makes products of layers, each with its activations.
func (o *operands) candidate(name string, layers []layer, streaming bool) (measure.Candidate, error) {
	c := measure.Candidate{Name: name}
	for _, l := range layers {
		typ := o.dtype
		if typ == 0 {
			var ok bool
			if typ, ok = gemm.TypeOf(l.w.DType); !ok {
				return c, fmt.Errorf("%s: no GPU multiplies %v as it is: choose a type with --dtype", l.name, l.w.DType)
			}
		}
		x, err := o.activations(l, typ.Operand())
		if err != nil {
			return c, err
		}
		w := l.w.Cast(typ.Operand())
		if o.cold {
			w = w.Stacked((coldBytes + len(w.Data) - 1) / len(w.Data))
		}
		p := gemm.Problem{M: x.Rows, N: w.Rows, K: w.Cols, Type: typ, Streaming: streaming}
		c.Products = append(c.Products, cuda.Product{Name: l.name, Problem: p, X: x, W: w})
	}
	return c, nil
}

// activations of a layer: drawn, the same for all layers with as many inputs, or from a file, from
// the tensor that is named in --x or like the layer.
func (o *operands) activations(l layer, d weights.DType) (gemm.Matrix, error) {
	if o.x.path == "" {
		m := o.m
		if m == 0 {
			m = defaultTokens
		}
		key := shape{d, m, l.w.Cols}
		if _, ok := o.drawn[key]; !ok {
			o.drawn[key] = o.x.draw(d, m, l.w.Cols, o.seed)
		}
		return o.drawn[key], nil
	}
	name := o.x.tensors
	if name == "" {
		name = l.name
	}
	m, err := o.open(o.x.path)
	if err != nil {
		return gemm.Matrix{}, err
	}
	t, ok := m.Tensor(name)
	if !ok {
		return gemm.Matrix{}, fmt.Errorf("%s has no tensor %q for the activations of layer %s", o.x.path, name, l.name)
	}
	x, err := gemm.FromTensor(t, 0)
	switch {
	case err != nil:
		return x, err
	case x.Cols != l.w.Cols:
		return x, fmt.Errorf("%s: tensor %q: activations of %d inputs for layer %s, which has %d", o.x.path, name, x.Cols, l.name, l.w.Cols)
	case o.m > x.Rows:
		return x, fmt.Errorf("%s: tensor %q: %d tokens, and %d are asked for", o.x.path, name, x.Rows, o.m)
	}
	if o.m > 0 {
		x.Data = x.Data[:len(x.Data)/x.Rows*o.m]
		x.Rows = o.m
	}
	return x.Cast(d), nil
}
