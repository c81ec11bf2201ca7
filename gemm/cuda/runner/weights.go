package runner

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Weights returns tensors by their name in the checkpoint, in the stored row-major order, as little-endian elements of
// type BF16, F16 or F32. The runner only reads the values and does not keep them.
type Weights interface {
	Tensor(ctx context.Context, name string) (weights.DType, []byte, error)
}

// Stored returns a model's own tensors as a runtime uses them: a stored shift is subtracted, in float32. Quantised
// weights have the values of package forward. They are in BF16 if BF16 represents all of them exactly, and otherwise in
// F32. The model must stay open while the tensors are used.
func Stored(m *weights.Model, layout *arch.Layout) Weights {
	return stored{m, forward.Unshifted(m, layout), sync.OnceValues(func() (*quant.Description, error) { return quant.Describe(m) })}
}

type stored struct {
	model     *weights.Model
	unshifted forward.Weights
	quantised func() (*quant.Description, error)
}

func (s stored) Tensor(ctx context.Context, name string) (weights.DType, []byte, error) {
	if err := ctx.Err(); err != nil {
		return weights.F32, nil, err
	}
	computes, err := s.computes(name)
	if err != nil {
		return weights.F32, nil, err
	}
	if computes {
		values, err := s.unshifted.Tensor(ctx, name)
		if err != nil {
			return weights.F32, nil, err
		}
		t := encoded(weights.BF16, values)
		return t.dtype, t.data, nil
	}
	t, ok := s.model.Tensor(name)
	if !ok {
		return weights.F32, nil, fmt.Errorf("tensor %q: is not in %s", name, s.model.Dir)
	}
	if _, shifted := s.model.Tensor(name + weights.ShiftSuffix); shifted {
		return decoded{s.unshifted}.Tensor(ctx, name)
	}
	if _, ok := elements[t.DType]; !ok {
		return t.DType, nil, fmt.Errorf("%s: tensor %q: the GPU runner does not support type %s: store the tensor as BF16, F16 or F32", t.File, name, t.DType)
	}
	return t.DType, t.Data, nil
}

// computes reports whether a tensor is a quantised weight with values that are computed from codes.
func (s stored) computes(name string) (bool, error) {
	q, err := s.quantised()
	w, ok := q.Weight(name)
	return ok && !w.Plain(), err
}

// Decoded returns weights that are computed in float32.
func Decoded(w forward.Weights) Weights { return decoded{w} }

type decoded struct{ weights forward.Weights }

func (d decoded) Tensor(ctx context.Context, name string) (weights.DType, []byte, error) {
	values, err := d.weights.Tensor(ctx, name)
	return weights.F32, bytesOf(values), err
}

// elements are the types that products can multiply.
var elements = map[weights.DType]cuda.Element{weights.BF16: cuda.BF16, weights.F16: cuda.FP16, weights.F32: cuda.FP32}

// dtypes is the inverse of elements.
var dtypes = map[cuda.Element]weights.DType{cuda.BF16: weights.BF16, cuda.FP16: weights.F16, cuda.FP32: weights.F32}

// loader copies tensors to the card.
type loader struct {
	device *cuda.Device
	memory *cuda.Memory
	source Weights
	act    cuda.Element // element type of activations
	upload func(to cuda.Address, data []byte) error
}

// tensor returns a tensor, which must have n elements.
func (l *loader) tensor(ctx context.Context, name string, n int) (weights.DType, []byte, error) {
	d, data, err := l.source.Tensor(ctx, name)
	if err == nil && len(data) != n*d.Bits()/8 {
		err = fmt.Errorf("tensor %q: %d bytes of %s is not the size of its %d elements", name, len(data), d, n)
	}
	return d, data, err
}

// vector uploads a tensor as float32 and returns its address; 0 for an empty name. plus is added to each value.
func (l *loader) vector(ctx context.Context, name string, n int, plus float32) (cuda.Address, error) {
	if name == "" {
		return 0, nil
	}
	d, data, err := l.tensor(ctx, name, n)
	if err != nil {
		return 0, err
	}
	values, err := decode(d, data, n)
	if err != nil {
		return 0, fmt.Errorf("tensor %q: %w", name, err)
	}
	if plus != 0 {
		for i := range values {
			values[i] += plus
		}
	}
	return l.floats(values)
}

func (l *loader) floats(values []float32) (cuda.Address, error) { return l.bytes(bytesOf(values)) }

func (l *loader) ints(values []int32) (cuda.Address, error) {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return l.bytes(data)
}

func (l *loader) bytes(data []byte) (cuda.Address, error) {
	at, err := l.memory.Alloc(len(data))
	if err != nil {
		return 0, err
	}
	return at, l.upload(at, data)
}

// stored returns the element type that a tensor of type d has on the card.
func (l *loader) stored(d weights.DType) cuda.Element {
	if e := elements[d]; l.act == cuda.FP32 && e == cuda.BF16 {
		return e
	}
	return l.act
}

// piece is the number of elements that are converted and uploaded between two checks of the context.
const piece = 1 << 22

// matrix uploads a tensor of n elements to an address, converted to element type e.
func (l *loader) matrix(ctx context.Context, to cuda.Address, d weights.DType, data []byte, n int, e cuda.Element) error {
	size := d.Bits() / 8
	for from := 0; from < n; from += piece {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := data[from*size : min(from+piece, n)*size]
		if elements[d] != e {
			var err error
			if part, err = converted(ctx, d, part, e); err != nil {
				return err
			}
		}
		if err := l.upload(to.Plus(from*e.Bytes()), part); err != nil {
			return err
		}
	}
	return nil
}

// converted returns values in element type e.
func converted(ctx context.Context, d weights.DType, data []byte, e cuda.Element) ([]byte, error) {
	const each = 1 << 17 // elements per goroutine
	format, _ := dtypes[e].Format()
	size, bytes := d.Bits()/8, e.Bytes()
	n := len(data) / size
	out := make([]byte, n*bytes)
	return out, parallel.Run(ctx, (n+each-1)/each, 0, func(_ context.Context, i int) error {
		from, to := i*each, min((i+1)*each, n)
		values, err := decode(d, data[from*size:to*size], to-from)
		if err == nil {
			format.Encode(out[from*bytes:to*bytes], values)
		}
		return err
	})
}

// decode returns values in float32. data may lie in a mapped file.
func decode(d weights.DType, data []byte, n int) ([]float32, error) {
	format, ok := d.Format()
	if !ok {
		return nil, fmt.Errorf("type %s is not supported: store the tensor as BF16, F16 or F32", d)
	}
	values := make([]float32, n)
	err := weights.Guard("a tensor", func() error { format.Decode(values, weights.Need(data)); return nil })
	return values, err
}

func bytesOf(values []float32) []byte {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}
