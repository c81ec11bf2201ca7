package runner

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// linear is one or more linear layers that read the same input. Their outputs are concatenated.
type linear struct {
	groups          []weight
	inputs, outputs int
	bias            cuda.Address // float32 biases of all outputs; 0: no bias
	layers          []decoder.Linear
}

// weight is one matrix: the weights of consecutive layers with the same element type.
type weight struct {
	at         cuda.Address
	element    cuda.Element
	transposed bool
	from       int // index of the first output
	outputs    int
}

// linear loads layers that share an input, as one linear.
func (l *loader) linear(ctx context.Context, layers ...decoder.Linear) (*linear, error) {
	on := &linear{inputs: layers[0].Inputs, layers: layers}
	all := make([]tensor, len(layers)) // each tensor is read only once, because values of quantised weights must be computed
	for i, layer := range layers {
		var err error
		if all[i].dtype, all[i].data, err = l.tensor(ctx, layer.Weight, layer.Inputs*layer.Outputs); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(layers); {
		w := weight{element: l.stored(all[i].dtype), transposed: layers[i].Transposed, from: on.outputs, outputs: layers[i].Outputs}
		n := 1 // number of layers of the group
		for ; i+n < len(layers) && !w.transposed && !layers[i+n].Transposed && l.stored(all[i+n].dtype) == w.element; n++ {
			w.outputs += layers[i+n].Outputs
		}
		var err error
		if w.at, err = l.memory.Alloc(w.outputs * on.inputs * w.element.Bytes()); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", layers[i].Weight, err)
		}
		to := w.at
		for k, layer := range layers[i : i+n] {
			size, t := layer.Inputs*layer.Outputs, all[i+k]
			if err := l.matrix(ctx, to, t.dtype, t.data, size, w.element); err != nil {
				return nil, fmt.Errorf("tensor %q: %w", layer.Weight, err)
			}
			to = to.Plus(size * w.element.Bytes())
		}
		on.groups = append(on.groups, w)
		on.outputs += w.outputs
		i += n
	}
	return on, l.biases(ctx, on)
}

// biases loads the biases of all layers as one vector, if any layer has one.
func (l *loader) biases(ctx context.Context, on *linear) error {
	all, any := make([]float32, 0, on.outputs), false
	for _, layer := range on.layers {
		values := make([]float32, layer.Outputs)
		if layer.Bias != "" {
			any = true
			d, data, err := l.tensor(ctx, layer.Bias, layer.Outputs)
			if err != nil {
				return err
			}
			if values, err = decode(d, data, layer.Outputs); err != nil {
				return err
			}
		}
		all = append(all, values...)
	}
	if !any {
		return nil
	}
	var err error
	on.bias, err = l.floats(all)
	return err
}

// apply queues y[rows,outputs] = x·wᵀ + b, or y += x·wᵀ + b if add is true. out is the element type of y. strideX and
// strideY are the distances between rows of x and of y, in elements.
func (p *pass) apply(l *linear, y, x cuda.Address, rows, strideX, strideY int, out cuda.Element, add bool) error {
	if err := p.grams.observe(p, l, x, rows, strideX); err != nil {
		return err
	}
	var split []cuda.Address
	for _, w := range l.groups {
		inputs, e, s := []cuda.Address{x}, p.act, strideX
		if w.element != p.act { // BF16 weights and float32 activations
			if split == nil {
				var err error
				if split, err = p.splitInput(x, rows, l.inputs, strideX); err != nil {
					return err
				}
			}
			inputs, e, s = split, w.element, l.inputs
		}
		shape := cuda.LinearShape{M: rows, N: w.outputs, K: l.inputs, In: e, Out: out, Transposed: w.transposed, StrideX: s, StrideY: strideY}
		to := y.Plus(w.from * out.Bytes())
		for i, from := range inputs {
			if err := p.multiply(shape, to, from, w.at, add || i > 0); err != nil {
				return p.layerError(l, err)
			}
		}
	}
	if l.bias != 0 {
		if err := p.kernels.addBias.Launch(cuda.Grid{X: rows}, cuda.Grid{X: threads}, y, l.bias, l.outputs, strideY); err != nil {
			return err
		}
	}
	return p.finite(l, y, rows, strideY)
}

// splitInput queues the computation of the three BF16 parts of x.
func (p *pass) splitInput(x cuda.Address, rows, width, stride int) ([]cuda.Address, error) {
	parts := make([]cuda.Address, 3)
	at, err := p.buffer("split", 3*align(rows*width*2))
	if err != nil {
		return nil, err
	}
	for i := range parts {
		parts[i] = at.Plus(i * align(rows*width*2))
	}
	return parts, p.kernels.split.Launch(flat(rows*width), cuda.Grid{X: threads}, parts[0], parts[1], parts[2], x, rows, width, stride)
}

// align rounds up to a multiple of 256, the alignment of allocations.
func align(bytes int) int { return (bytes + 255) / 256 * 256 }

// multiply queues a product. It describes each shape to cuBLASLt only once. Without Options.Exact, the first call for a
// shape also measures the kernels that cuBLASLt offers and keeps the fastest.
func (p *pass) multiply(s cuda.LinearShape, y, x, w cuda.Address, add bool) error {
	s.Aligned = 256
	for s.Aligned > 2 && (int(y)|int(x)|int(w))%s.Aligned != 0 {
		s.Aligned /= 2
	}
	l, ok := p.products[s]
	if !ok {
		var err error
		if l, err = p.device.NewLinear(s); err != nil {
			return err
		}
		if !p.exact {
			if err := p.tune(l, s, x, w); err != nil {
				l.Close()
				return err
			}
		}
		p.products[s] = l
	}
	if p.launched != nil {
		p.launched[l] = true
	}
	return l.Launch(y, x, w, add)
}

// tune measures the kernels of a product. The results go to a buffer of the model, because a step's own buffers must
// not move.
func (p *pass) tune(l *cuda.Linear, s cuda.LinearShape, x, w cuda.Address) error {
	own := pass{Model: p.Model, scratch: p.Model.scratch, rows: p.rows}
	y, err := own.buffer("tune", s.M*s.StrideY*s.Out.Bytes())
	if err != nil {
		return err
	}
	return l.Tune(y, x, w)
}
