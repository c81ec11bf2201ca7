package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Report is the result of [Model]. Nil and empty fields are unknown.
type Report struct {
	Family  string   `json:"family,omitempty"`
	Note    string   `json:"note,omitempty"`
	Tensors []Tensor `json:"tensors"`
	// Weights are the quantised weights as kernels read them. They are stored in some of Tensors.
	Weights []Weight `json:"weights,omitempty"`
	Total   Total    `json:"total"`
	// Method is the quant_method of a quantised checkpoint, as its config names it.
	Method string `json:"quant_method,omitempty"`
	// Formats counts the quantised weights by format, in words.
	Formats string `json:"quantised_weights,omitempty"`
	// Quantised are the tensors of the quantisation, by format and role.
	Quantised []quant.Copied `json:"quantised,omitempty"`
	// Untouched are the tensors that the family does not know. No pass changes them.
	Untouched []arch.UnclaimedGroup `json:"untouched,omitempty"`
	// Blocked are the indices that no pass may change, mostly because an unclaimed tensor might use them.
	Blocked []arch.Blocked `json:"blocked,omitempty"`
	Adapter *Adapter       `json:"adapter,omitempty"`
	Ceiling *Ceiling       `json:"ceiling,omitempty"`
	// Kernels are the kernels that predictions assume for a model with quantised layers; see [cost.AssumedKernels].
	Kernels []string `json:"kernels,omitempty"`
	// Coverage is the part of the model that the predictions cover; nil: all linear layers.
	Coverage *predict.Coverage `json:"coverage,omitempty"`
	// NotWorthIt is the reason why a conversion could save at most 1 % of the energy; empty if there is none.
	NotWorthIt string `json:"not_worth_it,omitempty"`
}

// Tensor is a stored tensor.
type Tensor struct {
	Name   string `json:"name"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	Role   string `json:"family_role,omitempty"`
	Kind   string `json:"kind"` // see [arch.Layout.Kind]
	Linear bool   `json:"linear"`
	Bytes  int64  `json:"bytes"`
	// Quantised is the format of the quantised weight that the tensor belongs to, and Part its role there.
	Quantised string     `json:"quantised,omitempty"`
	Part      quant.Role `json:"part,omitempty"`
	*cost.Activity
	// Predicted is the energy of products with this tensor, relative to random normal weights of the same scale.
	Predicted *cost.Estimate `json:"predicted,omitempty"`

	elements int
	layer    layerShape
	read     bool // the tensor belongs to a quantised weight whose values can be read
}

// Total has the totals over all tensors.
type Total struct {
	Tensors  int    `json:"tensors"`
	Elements int    `json:"elements"`
	Bytes    int64  `json:"bytes"`
	Linear   int    `json:"linear_elements"`
	NaN      uint64 `json:"nan"`
	Inf      uint64 `json:"inf"`
	// Energy is the mean over linear layers, weighted by their number of weights.
	Energy *cost.Estimate `json:"predicted,omitempty"`

	layers map[layerShape]int // number of weights of each shape
}

// Adapter is the LoRA adapter in the model's folder.
type Adapter struct {
	File    string `json:"file"`
	Tensors int    `json:"tensors"`
	// Changes is the number of the model's tensors that the adapter changes; 0 if it is unknown.
	Changes int `json:"changes,omitempty"`
	// Problem is the reason why passes that move weights are refused with this adapter; empty if they are allowed.
	Problem string `json:"problem,omitempty"`
}

// Ceiling is the largest predicted saving. Relative is the energy with all weights zero, relative to the model's present energy.
type Ceiling struct {
	Relative    float64    `json:"relative_energy"`
	Interval    [2]float64 `json:"interval"` // 95 %
	Calibration string     `json:"calibration"`
}

// layerShape groups linear layers that use the same energy if all their weights are zero.
type layerShape struct {
	dtype           weights.DType // the type that the tensor cores read
	outputs, inputs int
	format          quant.Format // zero for an unquantised layer
	packed          bool         // see [cost.Multiplied]
}

// multiplied returns how layers of this shape are multiplied.
func (l *layerShape) multiplied() cost.Multiplied {
	m := cost.Multiplied{Operand: l.dtype, Packed: l.packed}
	if l.format != (quant.Format{}) {
		m.Format = &l.format
	}
	return m
}

func shapeOf(t weights.Info, outAxis int) layerShape {
	rows, cols := t.Matrix()
	if outAxis == 1 {
		rows, cols = cols, rows
	}
	return layerShape{dtype: t.DType, outputs: rows, inputs: cols}
}

// add adds a tensor to the report.
func (r *Report) add(t Tensor) {
	r.Tensors = append(r.Tensors, t)
	tot := &r.Total
	tot.Tensors++
	tot.Elements += t.elements
	tot.Bytes += t.Bytes
	if t.Activity != nil {
		tot.NaN += t.NaN
		tot.Inf += t.Inf
	}
	tot.addLayer(t.Predicted, t.elements, t.layer)
}

// addLayer adds the prediction of a linear layer, which may be nil.
func (t *Total) addLayer(e *cost.Estimate, elements int, layer layerShape) {
	if e == nil {
		return
	}
	t.Linear += elements
	if t.Energy == nil {
		first := *e
		t.Energy, t.layers = &first, map[layerShape]int{layer: elements}
		return
	}
	share := float64(elements) / float64(t.Linear)
	t.Energy.Relative += share * (e.Relative - t.Energy.Relative)
	for i := range t.Energy.Interval {
		t.Energy.Interval[i] += share * (e.Interval[i] - t.Energy.Interval[i])
	}
	t.layers[layer] += elements
}

// shapes returns the shapes of all linear layers, sorted.
func (t *Total) shapes() []layerShape {
	return slices.SortedFunc(maps.Keys(t.layers), func(a, b layerShape) int {
		return cmp.Or(cmp.Compare(a.dtype, b.dtype), cmp.Compare(a.outputs, b.outputs), cmp.Compare(a.inputs, b.inputs),
			cmp.Compare(a.format.String(), b.format.String()))
	})
}

// kernels describes the kernels that the predictions assume.
func (t *Total) kernels(o Options) []string {
	var list []cost.Multiplied
	for _, l := range t.shapes() {
		list = append(list, l.multiplied())
	}
	return cost.AssumedKernels(list, o.Role, o.Workload)
}

// worthwhile is the smallest share, of energy or of weights, that makes a conversion worth while.
const worthwhile = 0.01

// conclude computes the ceiling and decides whether a conversion is worth while. zeros returns the energy of layers of a
// shape with all weights zero, relative to random weights.
func (r *Report) conclude(zeros func(layerShape) (cost.Estimate, error)) error {
	tot := r.Total
	if e := tot.Energy; e != nil {
		r.Ceiling = &Ceiling{Calibration: e.Calibration}
		for _, l := range tot.shapes() {
			least, err := zeros(l)
			if err != nil {
				return err
			}
			share := float64(tot.layers[l]) / float64(tot.Linear) / e.Relative
			r.Ceiling.Relative += float64(share * least.Relative)
			for i, end := range least.Interval { // all layers share the error of one cost model
				r.Ceiling.Interval[i] += float64(share * end)
			}
		}
	}
	switch linear := float64(tot.Linear); {
	case tot.Tensors == 0:
	case tot.Linear == 0 && len(r.Quantised) > 0:
		r.NotWorthIt = "all linear layers are quantised in formats that conversions copy unchanged"
	case tot.Linear == 0:
		r.NotWorthIt = "the model has no linear layer whose weights have a dtype that conversions can change"
	case linear < worthwhile*float64(r.Elements()):
		r.NotWorthIt = fmt.Sprintf("only %d of the model's %d values are weights of linear layers", tot.Linear, r.Elements())
	case r.Ceiling.Relative > 1-worthwhile:
		r.NotWorthIt = "even all-zero weights would save less than 1 % of the linear layers' predicted energy"
	}
	return nil
}
