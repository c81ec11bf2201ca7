package cli

import (
	"github.com/urfave/cli/v2"

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
	Flags:       flags([]cli.Flag{tensorsFlag, workloadFlag, roleFlag, archFlag}, commonFlags),
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
			return printJSON(c.App.Writer, r)
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
	Ceiling *inspectCeiling `json:"ceiling,omitempty"`

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
}

type inspectTotal struct {
	Tensors  int            `json:"tensors"`
	Elements int            `json:"elements"`
	Bytes    int64          `json:"bytes"`
	Linear   int            `json:"linear_elements"`
	NaN      uint64         `json:"nan"`
	Inf      uint64         `json:"inf"`
	Energy   *cost.Estimate `json:"predicted,omitempty"`
}

// inspectCeiling is the energy if every weight were zero, over today's: no transform saves more.
type inspectCeiling struct {
	Relative    float64 `json:"relative_energy"`
	Calibration string  `json:"calibration"`
}

// inspect reads all tensors, with progress.
func inspect(c *cli.Context, m *weights.Model, o readings) (*inspectJSON, error) {
	layout, unknown, err := transform.Resolve(m, o.family)
	if err != nil {
		return nil, err
	}
	r := &inspectJSON{Tensors: []inspectTensor{}, workload: o.workload, role: o.role}
	if layout != nil {
		r.Family = layout.Family
	} else {
		r.Note = "the family is not known: " + unknown.Error()
	}
	event, end := newProgress(c)
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
	if e := r.Total.Energy; e != nil {
		r.Ceiling = &inspectCeiling{cost.Rough{}.Ceiling(o.role, o.workload) / e.Relative, e.Calibration}
	}
	return r, nil
}

func inspectOne(c *cli.Context, t weights.Tensor, layout *arch.Layout, o readings) (inspectTensor, error) {
	it := inspectTensor{Name: t.Name, DType: t.DType.String(), Shape: append([]int{}, t.Shape...), Bytes: t.Size(),
		Kind: kindOf(layout, t.Name), Linear: transform.Linear(layout, t.Info), weights: t.Len()}
	outAxis := 0
	if layout != nil && layout.Claims[t.Name] != nil {
		it.Role, outAxis = layout.Claims[t.Name].Role.String(), layout.Claims[t.Name].OutAxis
	}
	if _, ok := t.DType.Format(); !ok {
		return it, nil
	}
	a, err := o.activity(c.Context, t)
	if err != nil {
		return it, err
	}
	it.Activity = &a
	if it.Linear {
		e := predictor.Energy(a, outAxis, o.role, o.workload)
		it.Predicted = &e
	}
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
	if t.Predicted == nil || t.weights == 0 {
		return
	}
	tot.Linear += t.weights
	if tot.Energy == nil {
		e := *t.Predicted
		tot.Energy = &e
		return
	}
	share := float64(t.weights) / float64(tot.Linear)
	tot.Energy.Relative += share * (t.Predicted.Relative - tot.Energy.Relative)
	for i := range tot.Energy.Interval {
		tot.Energy.Interval[i] += share * (t.Predicted.Interval[i] - tot.Energy.Interval[i])
	}
}
