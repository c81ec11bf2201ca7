package runner

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// numbers are whole, halves and quarters, which every type holds.
func numbers(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%64-32) / 4
	}
	return v
}

// TestMatrixConverts: a tensor of every type is uploaded in every element, also in more than one piece.
func TestMatrixConverts(t *testing.T) {
	for _, n := range []int{3, 1<<22 + 5} {
		values := numbers(n)
		for d, from := range elements {
			data := testmodel.Matrix(d, n, values).Data
			for to, stored := range dtypes {
				if n > 3 && (to == from || to == cuda.FP32) {
					continue
				}
				var got []byte
				l := loader{upload: func(at cuda.Address, part []byte) error {
					if int(at) != 1000+len(got) {
						t.Errorf("%v to %v: %d bytes at %d, behind %d", d, to, len(part), at, len(got))
					}
					got = append(got, part...)
					return nil
				}}
				testmodel.OK(t, l.matrix(t.Context(), 1000, d, data, n, to))
				if want := testmodel.Matrix(stored, n, values).Data; !bytes.Equal(got, want) {
					t.Errorf("%d values of %v to %v: other bytes", n, d, to)
				}
			}
		}
	}
	planted := errors.New("full")
	l := loader{upload: func(cuda.Address, []byte) error { return planted }}
	for e := range dtypes {
		if err := l.matrix(t.Context(), 0, weights.F32, make([]byte, 4), 1, e); !errors.Is(err, planted) {
			t.Errorf("%v: %v", e, err)
		}
	}
}

// TestMatrixIsCancelled: large tensors are loaded in pieces, and the context is looked at before each.
func TestMatrixIsCancelled(t *testing.T) {
	for _, e := range []cuda.Element{cuda.BF16, cuda.FP32} {
		ctx, cancel := context.WithCancel(t.Context())
		uploads := 0
		l := loader{upload: func(cuda.Address, []byte) error { uploads++; cancel(); return nil }}
		if err := l.matrix(ctx, 0, weights.BF16, make([]byte, 4*piece), 2*piece, e); !errors.Is(err, context.Canceled) || uploads != 1 {
			t.Errorf("%v: %v after %d uploads", e, err, uploads)
		}
	}
}

// TestStoredElement: float32 activations keep BF16 weights as they are; all other weights have the activations' type.
func TestStoredElement(t *testing.T) {
	for act, want := range map[cuda.Element][3]cuda.Element{
		cuda.FP32: {cuda.BF16, cuda.FP32, cuda.FP32},
		cuda.BF16: {cuda.BF16, cuda.BF16, cuda.BF16},
		cuda.FP16: {cuda.FP16, cuda.FP16, cuda.FP16},
	} {
		l := loader{act: act}
		for i, d := range []weights.DType{weights.BF16, weights.F16, weights.F32} {
			if got := l.stored(d); got != want[i] {
				t.Errorf("%v with %v activations lies as %v, want %v", d, act, got, want[i])
			}
		}
	}
}

func TestDecode(t *testing.T) {
	for d := range elements {
		got, err := decode(d, testmodel.Matrix(d, 40, numbers(40)).Data, 40)
		if err != nil || !slices.Equal(got, numbers(40)) {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
	_, err := decode(weights.U16, make([]byte, 2), 1)
	testmodel.WantError(t, err, "type U16 is not supported: store the tensor as BF16, F16 or F32")
	if got := bytesOf([]float32{1, float32(math.Inf(-1))}); !bytes.Equal(got, []byte{0, 0, 0x80, 0x3F, 0, 0, 0x80, 0xFF}) {
		t.Errorf("% x", got)
	}
}

// TestStoredQuantised: quantised weights have the values of package forward, in BF16 where it represents them exactly.
func TestStoredQuantised(t *testing.T) {
	const name = "model.layers.0.mlp.up_proj.weight"
	for _, q := range testmodel.Quantisations[:9] {
		m := testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{}))
		layout := testmodel.LayoutOf(t, m)
		if w, _ := layout.Quantised.Weight(name); w.CanRead() != nil {
			continue
		}
		want, err := forward.Stored(m).Tensor(t.Context(), name)
		testmodel.OK(t, err)
		d, data, err := Stored(m, layout).Tensor(t.Context(), name)
		testmodel.OK(t, err)
		got, err := decode(d, data, len(want))
		if err != nil || !slices.Equal(got, want) || (d == weights.BF16) != slices.Equal(want, rounded(want)) {
			t.Errorf("%s: %s with other values (%v)", q.Name, d, err)
		}
	}
}

// rounded are values in BF16.
func rounded(values []float32) []float32 {
	f := testmodel.FormatOf(weights.BF16)
	all := make([]float32, len(values))
	for i, v := range values {
		all[i] = f.Value(f.FromValue(v))
	}
	return all
}

// given are weights in memory.
type given map[string]weights.Tensor

func (g given) Tensor(_ context.Context, name string) (weights.DType, []byte, error) {
	t, ok := g[name]
	if !ok {
		return weights.F32, nil, errors.New("no such tensor")
	}
	return t.DType, t.Data, nil
}

func TestTensorHasItsShape(t *testing.T) {
	l := loader{source: given{"w": testmodel.Matrix(weights.BF16, 3, numbers(6))}}
	if _, _, err := l.tensor(t.Context(), "w", 6); err != nil {
		t.Error(err)
	}
	_, _, err := l.tensor(t.Context(), "w", 7)
	testmodel.WantError(t, err, `tensor "w": 12 bytes of BF16 is not the size of its 7 elements`)
	_, err = l.vector(t.Context(), "v", 6, 0)
	testmodel.WantError(t, err, "no such tensor")
	if at, err := l.vector(t.Context(), "", 6, 0); at != 0 || err != nil {
		t.Error(at, err)
	}
}

func TestStored(t *testing.T) {
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{Seed: 1, DType: weights.F8E4M3}))
	w := Stored(m, testmodel.LayoutOf(t, m))
	_, _, err := w.Tensor(t.Context(), "model.layers.0.mlp.up_proj.weight")
	testmodel.WantError(t, err, `.safetensors: tensor "model.layers.0.mlp.up_proj.weight": the GPU runner does not support type F8_E4M3: store the tensor as BF16, F16 or F32`)
	_, _, err = w.Tensor(t.Context(), "none")
	testmodel.WantError(t, err, `tensor "none": is not in `)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.Tensor(ctx, "none"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m = testmodel.Random(t, "llama-tiny", 1)
	w = Stored(m, testmodel.LayoutOf(t, m))
	want := testmodel.TensorOf(t, m, "model.norm.weight")
	if d, data, err := w.Tensor(t.Context(), "model.norm.weight"); err != nil || d != want.DType || !bytes.Equal(data, want.Data) {
		t.Error(d, err)
	}
}
