package inspect

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Weight is a quantised weight, or one of its experts, as kernels read it.
type Weight struct {
	// Name is the name in an unquantised checkpoint, with the expert's number if there are several.
	Name   string `json:"name"`
	Format string `json:"format"`
	Shape  []int  `json:"shape"` // shape of one expert
	Role   string `json:"family_role,omitempty"`
	Kind   string `json:"kind"` // see [arch.Layout.Kind]
	Linear bool   `json:"linear"`
	// Operand is the type that the tensor cores read. Activity counts elements of this type, row by row.
	Operand string `json:"operand"`
	*cost.Activity
	// Packed counts the bytes of the codes in the file, if kernels do not read them unchanged.
	Packed *cost.Activity `json:"packed,omitempty"`
	// Predicted is the energy of products with this operand, relative to random normal elements of the same scale; of all
	// experts together.
	Predicted *cost.Estimate `json:"predicted,omitempty"`

	codes string // short name of the format
	layer layerShape
}

// quantisedWeights lists the quantised weights of a model whose values can be read. It counts the toggles of their operands;
// stored has the counts of stored tensors.
func quantisedWeights(ctx context.Context, layout *arch.Layout, q *quant.Description, stored map[string]*cost.Activity, o Options) (list []Weight, err error) {
	for _, w := range q.Weights {
		if w.Plain() || w.CanRead() != nil {
			continue
		}
		if err := weights.Guard(w.Tensors[0].File, w.Check); err != nil {
			return nil, err
		}
		d := len(w.Shape)
		one := Weight{Format: w.Format.String(), Shape: w.Shape[d-2:], Kind: layout.Kind(w.Name), Operand: w.Operand().String(), codes: w.Format.Codes}
		one.Linear = layout.IsLinearWeight(w)
		if layout != nil && layout.Claims[w.Name] != nil {
			one.Role = layout.Claims[w.Name].Role.String()
		}
		if one.Linear {
			e, err := predict.Quantised(ctx, o.Calibration, w, w, layout.OutAxis(w.Name), o.Role, o.Workload)
			if err != nil {
				return nil, err
			}
			one.Predicted = &e
		}
		one.layer = shapeOf(weights.Info{DType: w.Operand(), Shape: one.Shape}, layout.OutAxis(w.Name))
		one.layer.format, one.layer.packed = w.Format, w.Dequantised()
		for expert := range w.Experts() {
			one.Name = w.Name
			if w.Experts() > 1 {
				one.Name = fmt.Sprintf("%s[%d]", w.Name, expert)
			}
			if one.Activity = stored[w.Tensors[0].Name]; w.Operand() != w.Tensors[0].DType || w.Experts() > 1 {
				if one.Activity, one.Packed, err = activities(ctx, w, expert, o.Workers); err != nil {
					return nil, err
				}
			}
			list = append(list, one)
		}
	}
	return list, nil
}

// activities counts toggles of an expert's operand, and of its codes in the file.
func activities(ctx context.Context, w *quant.Quantised, expert, workers int) (operand, packed *cost.Activity, err error) {
	m, err := w.Load(expert)
	if err != nil {
		return nil, nil, err
	}
	d := w.Operand()
	row := m.K * d.Bits() / 8
	data := make([]byte, m.N*row)
	const run = 64 // rows per goroutine
	err = parallel.Run(ctx, (m.N+run-1)/run, workers, func(_ context.Context, i int) error {
		copy(data[i*run*row:], m.Operand(d, i*run, min(run, m.N-i*run)))
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	codes := w.Tensors[0]
	values := weights.Tensor{Info: weights.Info{Name: w.Name, DType: d, Shape: []int{m.N, m.K}}, Data: data, File: codes.File}
	if operand, err = measured(ctx, values, workers); err != nil || d == codes.DType {
		return operand, nil, err
	}
	rows, _ := codes.Matrix()
	bytes := codes.Tensor
	bytes.DType, bytes.Data = weights.I8, codes.Data[len(codes.Data)/w.Experts()*expert:][:len(codes.Data)/w.Experts()]
	rows /= w.Experts()
	bytes.Shape = []int{rows, len(bytes.Data) / rows}
	packed, err = measured(ctx, bytes, workers)
	return operand, packed, err
}

// measured is [cost.Measure] of a tensor that may lie in a file.
func measured(ctx context.Context, t weights.Tensor, workers int) (a *cost.Activity, err error) {
	err = weights.Guard(t.File, func() error {
		found, err := cost.Measure(ctx, t, workers)
		a = &found
		return err
	})
	return a, err
}
