package testmodel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Hessians are the Hessians of a model's layers, from forward passes over random tokens.
type Hessians struct {
	Name             string
	Fitting, HeldOut Observed
	Asked            func(tensor string) error // called before every result of Fit; may be nil
}

// HessiansOf returns the Hessians of a model, with different tokens for fitting and held-out Hessians.
func HessiansOf(t TB, m *weights.Model) *Hessians {
	t.Helper()
	h := &Hessians{Name: "these tokens"}
	h.Fitting, _ = Forward(t, m, forward.Stored(m), 1)
	h.HeldOut, _ = Forward(t, m, forward.Stored(m), 2)
	return h
}

// Key returns the name.
func (h *Hessians) Key() string { return h.Name }

// Has returns true for every tensor.
func (h *Hessians) Has(string) bool { return true }

// Fit returns a copy, because the caller may change it.
func (h *Hessians) Fit(_ context.Context, tensor string) (sgemm.Matrix, error) {
	if h.Asked != nil {
		if err := h.Asked(tensor); err != nil {
			return sgemm.Matrix{}, err
		}
	}
	return h.Fitting.of(tensor)
}

// Held returns a copy too.
func (h *Hessians) Held(_ context.Context, tensor string) (sgemm.Matrix, error) {
	return h.HeldOut.of(tensor)
}

// Observed are the Hessians of one batch, by layer.
type Observed map[string]sgemm.Matrix

// Input implements [forward.Observer].
func (o Observed) Input(names []string, x sgemm.Matrix) error {
	h := sgemm.Dense(x.Cols, x.Cols, nil)
	if err := sgemm.Mul(context.Background(), h, x, x, sgemm.Op{TransA: true}); err != nil {
		return err
	}
	for i := range h.Data {
		h.Data[i] /= float32(x.Rows)
	}
	for _, name := range names {
		if _, twice := o[name]; twice {
			return fmt.Errorf("%s: more than one batch", name)
		}
		o[name] = h
	}
	return nil
}

func (o Observed) of(tensor string) (sgemm.Matrix, error) {
	h, known := o[tensor]
	if !known {
		return h, errors.New("the forward pass has no such layer")
	}
	return sgemm.Dense(h.Rows, h.Cols, append([]float32{}, h.Data...)), nil
}

// sequences returns sequences of random tokens. There are fewer tokens than most layers have inputs, so that inputs
// are correlated.
func sequences(t TB, m *weights.Model, seed uint64) [][]int32 {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	all := make([][]int32, 2)
	for i := range all {
		for range 15 {
			all[i] = append(all[i], int32(rng.IntN(LayoutOf(t, m).Dims["vocab"])))
		}
	}
	return all
}

// Decoder returns the decoder of a model whose family is known.
func Decoder(t TB, m *weights.Model) *forward.Decoder {
	t.Helper()
	d, err := forward.New(m, LayoutOf(t, m))
	OK(t, err)
	return d
}

// Forward runs a model with the given weights on random tokens. It returns the Hessians of the model's layers, and
// the losses.
func Forward(t TB, m *weights.Model, w forward.Weights, seed uint64) (Observed, *forward.Scores) {
	t.Helper()
	seen := Observed{}
	scores, err := Decoder(t, m).Run(context.Background(), w, sequences(t, m, seed), seen)
	OK(t, err)
	return seen, scores
}

// Tensors are the tensors of a model by name. They can be the weights of a forward pass.
type Tensors map[string]weights.Tensor

// TensorsOf returns the tensors of a model.
func TensorsOf(m *weights.Model) Tensors {
	all := Tensors{}
	for _, info := range m.Infos() {
		all[info.Name], _ = m.Tensor(info.Name)
	}
	return all
}

// Tensor implements [forward.Weights].
func (all Tensors) Tensor(_ context.Context, name string) ([]float32, error) {
	x := all[name]
	v := make([]float32, x.Len())
	FormatOf(x.DType).Decode(v, x.Data)
	return v, nil
}

// EachLinear calls fn with every linear layer of a model.
func EachLinear(t TB, m *weights.Model, fn func(x weights.Tensor, outAxis int)) {
	t.Helper()
	layout := LayoutOf(t, m)
	for _, info := range m.Infos() {
		if layout.IsLinear(info) {
			fn(TensorOf(t, m, info.Name), layout.Claims[info.Name].OutAxis)
		}
	}
}

// Outputs returns a stored layer's values, with one row for each output.
func Outputs(x weights.Tensor, outAxis int) [][]float64 {
	rows, cols := x.Matrix()
	v := Values(x)
	if outAxis == 0 {
		rows, cols = cols, rows
	}
	w := make([][]float64, cols)
	for n := range w {
		for k := range rows {
			if outAxis == 0 {
				w[n] = append(w[n], v[n*rows+k])
			} else {
				w[n] = append(w[n], v[k*cols+n])
			}
		}
	}
	return w
}

// Power returns tr(w·h·wᵀ).
func Power(w [][]float64, h sgemm.Matrix) (sum float64) {
	for _, row := range w {
		for i, a := range row {
			for j, v := range h.Row(i) {
				sum += a * float64(v) * row[j]
			}
		}
	}
	return sum
}

// Lost returns the error power of a layer's outputs as a share of the outputs' power.
func Lost(before, after weights.Tensor, outAxis int, h sgemm.Matrix) float64 {
	w, e := Outputs(before, outAxis), Outputs(after, outAxis)
	for n, row := range e {
		for k := range row {
			row[k] -= w[n][k]
		}
	}
	return Power(e, h) / Power(w, h)
}
