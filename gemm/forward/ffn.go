package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/forward/vector"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// ffn is a feed-forward network with its weights.
type ffn struct {
	in    linears
	gated bool
	act   func(to, from []float32)
	out   linear
	neurons
}

// neurons are the buffers of a network: the outputs of its first layers and the inputs of its last layer.
type neurons struct{ y, z sgemm.Matrix }

// newNeurons returns buffers for batches of rows rows.
func newNeurons(d *decoder.FFN, rows int) neurons {
	width := 0
	for _, l := range d.In {
		width += l.Outputs
	}
	return neurons{sgemm.Dense(rows, width, nil), sgemm.Dense(rows, d.Neurons(), nil)}
}

func loadFFN(ctx context.Context, w Weights, d *decoder.FFN, n neurons) (*ffn, error) {
	f := &ffn{gated: d.Gated, act: activations[d.Activation], neurons: n}
	var err error
	if f.in, err = loadLinears(ctx, w, d.In); err != nil {
		return nil, err
	}
	f.out, err = loadLinear(ctx, w, d.Out)
	return f, err
}

func (f *ffn) apply(p *pass, to, x sgemm.Matrix) error {
	y, z := f.y.Slice(0, x.Rows, 0, f.y.Cols), f.z.Slice(0, x.Rows, 0, f.z.Cols)
	if err := f.in.apply(p, y, x); err != nil {
		return err
	}
	if err := p.rows(y.Rows, func(i int) { f.activate(z.Row(i), y.Row(i)) }); err != nil {
		return err
	}
	if err := p.observe(z, f.out.Linear); err != nil {
		return err
	}
	return f.out.apply(p, to, z)
}

// activate writes z = act(y), or act(gate)·up if y is gate and up concatenated.
func (f *ffn) activate(z, y []float32) {
	f.act(z, y[:len(z)])
	if f.gated {
		for j, up := range y[len(z):] {
			z[j] *= up
		}
	}
}

// activations has functions that write act(x) for each x of from to to, which may be from.
var activations = map[decoder.Activation]func(to, from []float32){
	decoder.GELU:     vector.GELU,
	decoder.GELUTanh: vector.GELUTanh,
	decoder.ReLU:     vector.ReLU,
	decoder.SiLU:     vector.SiLU,
}
