package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

var inspectCommand = &cli.Command{
	Name:        "inspect",
	Usage:       "show what is in a model: toggles, zeros, and the most that could be saved",
	ArgsUsage:   "MODEL",
	Description: "MODEL is a folder of safetensors or one such file. All of it is read, nothing is written.",
	Flags:       flags([]cli.Flag{tensorsFlag, workloadFlag, roleFlag, archFlag, gpuFlag, calibrationFlag}, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL")
		if err != nil {
			return err
		}
		o, err := readOptions(c)
		if err != nil {
			return err
		}
		m, err := openModel(args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		r, err := inspect(c, m, o)
		if err != nil {
			return err
		}
		r.Model = args[0]
		if c.Bool("json") {
			return term.JSON(c.App.Writer, r)
		}
		r.print(c.App.Writer, c.Bool("tensors"))
		return nil
	},
}

// inspectJSON is what inspect --json prints.
type inspectJSON struct {
	Model   string          `json:"model"`
	Family  string          `json:"family,omitempty"`
	Note    string          `json:"note,omitempty"`
	Tensors []inspectTensor `json:"tensors"`
	Total   inspectTotal    `json:"total"`
	// Untouched are the tensors that are no part of the family: they stay as they are.
	Untouched []arch.UnclaimedGroup `json:"untouched,omitempty"`
	// Blocked are the indices that passes leave alone, mostly because of those.
	Blocked []arch.Blocked  `json:"blocked,omitempty"`
	Adapter *inspectAdapter `json:"adapter,omitempty"`
	Ceiling *inspectCeiling `json:"ceiling,omitempty"`
	// NotWorthIt is why a conversion has next to nothing to save; empty where it may have.
	NotWorthIt string `json:"not_worth_it,omitempty"`

	workload cost.Workload
	role     cost.Role
}

type inspectTensor struct {
	Name   string `json:"name"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	Role   string `json:"family_role,omitempty"`
	Kind   string `json:"kind"`
	Linear bool   `json:"linear"`
	Bytes  int64  `json:"bytes"`
	*cost.Activity
	// Predicted is the energy of a product by this tensor, relative to random data.
	Predicted *cost.Estimate `json:"predicted,omitempty"`

	weights int
	dtype   weights.DType
	outAxis int
}

type inspectTotal struct {
	Tensors  int            `json:"tensors"`
	Elements int            `json:"elements"`
	Bytes    int64          `json:"bytes"`
	Linear   int            `json:"linear_elements"`
	NaN      uint64         `json:"nan"`
	Inf      uint64         `json:"inf"`
	Energy   *cost.Estimate `json:"predicted,omitempty"`

	linear map[layerKind]int // weights of layers
}

// inspectAdapter is the LoRA adapter that lies beside the model.
type inspectAdapter struct {
	File    string `json:"file"`
	Tensors int    `json:"tensors"`
	// Changes counts the model's tensors that it changes; absent where that is not known.
	Changes int `json:"changes,omitempty"`
	// Problem is why passes that move weights are refused beside it.
	Problem string `json:"problem,omitempty"`
}

// inspectCeiling is the energy if every weight were zero, over today's: no transform saves more.
type inspectCeiling struct {
	Relative    float64 `json:"relative_energy"`
	Calibration string  `json:"calibration"`
}

// inspect reads all tensors, with progress.
func inspect(c *cli.Context, m *weights.Model, o readings) (*inspectJSON, error) {
	layout, err := arch.Resolve(m, o.family)
	if err != nil && !errors.Is(err, arch.ErrUnknownFamily) {
		return nil, err
	}
	r := &inspectJSON{Tensors: []inspectTensor{}, workload: o.workload, role: o.role}
	if layout != nil {
		r.Family, r.Untouched, r.Blocked = layout.Family, layout.UnclaimedGroups(), layout.BlockedIndices()
	} else {
		r.Note = "the family is not known: " + err.Error()
	}
	if m.Adapter != nil {
		r.Adapter = &inspectAdapter{File: weights.AdapterName, Tensors: len(m.Adapter.Tensors)}
		if layout != nil {
			r.Adapter.Changes, r.Adapter.Problem = len(layout.Adapter.Changes), layout.Adapter.Problem
		}
	}
	event, end := term.Progress(c)
	defer end()
	var done int64
	err = m.Each(func(t weights.Tensor) error {
		it, err := inspectOne(c, t, layout, o)
		if err != nil {
			return err
		}
		r.add(it)
		done += t.Size()
		event(transform.Event{Stage: "inspect", Done: done, Total: m.Size()})
		return c.Context.Err()
	})
	if err != nil {
		return nil, err
	}
	return r, r.conclude(func(l layerKind) (float64, error) {
		return o.calibration.Ceiling(l.dtype, l.n, l.k, o.role, o.workload)
	})
}

func inspectOne(c *cli.Context, t weights.Tensor, layout *arch.Layout, o readings) (inspectTensor, error) {
	it := inspectTensor{Name: t.Name, DType: t.DType.String(), Shape: append([]int{}, t.Shape...), Bytes: t.Size(),
		Kind: layout.Kind(t.Name), Linear: layout.IsLinear(t.Info), weights: t.Len(), dtype: t.DType}
	if layout != nil && layout.Claims[t.Name] != nil {
		it.Role = layout.Claims[t.Name].Role.String()
	}
	if _, ok := t.DType.Format(); !ok {
		return it, nil
	}
	a, err := o.activity(c.Context, t)
	if err != nil {
		return it, err
	}
	it.Activity = &a
	if !it.Linear || t.Len() == 0 {
		return it, nil
	}
	e, err := o.energy(c.Context, t, t, layout.OutAxis(t.Name))
	if err != nil {
		return it, err
	}
	it.Predicted = &e
	return it, nil
}

// add takes a tensor into the report; energies of layers are averaged by their weights.
func (r *inspectJSON) add(t inspectTensor) {
	r.Tensors = append(r.Tensors, t)
	tot := &r.Total
	tot.Tensors++
	tot.Elements += t.weights
	tot.Bytes += t.Bytes
	if t.Activity != nil {
		tot.NaN += t.NaN
		tot.Inf += t.Inf
	}
	if t.Predicted == nil {
		return
	}
	tot.Linear += t.weights
	if tot.Energy == nil {
		e := *t.Predicted
		tot.Energy, tot.linear = &e, map[layerKind]int{t.kind(): t.weights}
		return
	}
	share := float64(t.weights) / float64(tot.Linear)
	tot.Energy.Relative += share * (t.Predicted.Relative - tot.Energy.Relative)
	for i := range tot.Energy.Interval {
		tot.Energy.Interval[i] += share * (t.Predicted.Interval[i] - tot.Energy.Interval[i])
	}
	tot.linear[t.kind()] += t.weights
}

// layerKind is layers that zeros would cost alike.
type layerKind struct {
	dtype weights.DType
	n, k  int
}

func (t inspectTensor) kind() layerKind {
	rows, cols := weights.Info{DType: t.dtype, Shape: t.Shape}.Matrix()
	if t.outAxis == 1 {
		rows, cols = cols, rows
	}
	return layerKind{t.dtype, rows, cols}
}

// worthwhile is the least share, of energy and of weights, that is worth a conversion.
const worthwhile = 0.01

// conclude says what could be saved at the very most, and whether that is worth anything. zeros is
// the relative energy of weights that are all zero.
func (r *inspectJSON) conclude(zeros func(layerKind) (float64, error)) error {
	tot := r.Total
	if e := tot.Energy; e != nil {
		r.Ceiling = &inspectCeiling{Calibration: e.Calibration}
		for _, l := range slices.SortedFunc(maps.Keys(tot.linear), func(a, b layerKind) int {
			return cmp.Or(cmp.Compare(a.dtype, b.dtype), cmp.Compare(a.n, b.n), cmp.Compare(a.k, b.k))
		}) {
			least, err := zeros(l)
			if err != nil {
				return err
			}
			r.Ceiling.Relative += least / e.Relative * float64(tot.linear[l]) / float64(tot.Linear)
		}
	}
	switch linear := float64(tot.Linear); {
	case tot.Tensors == 0:
	case tot.Linear == 0:
		r.NotWorthIt = "there are no linear layers of a type that can be changed"
	case linear < worthwhile*float64(tot.Elements):
		r.NotWorthIt = fmt.Sprintf("linear layers have only %s of %s weights", term.Count(tot.Linear), term.Count(tot.Elements))
	case r.Ceiling.Relative > 1-worthwhile:
		r.NotWorthIt = "even weights that are all zero would save less than 1 %"
	}
	return nil
}
