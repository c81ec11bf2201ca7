package cli

import (
	"fmt"
	"io"
	"sort"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
)

var inspectCommand = &cli.Command{
	Name:      "inspect",
	Usage:     "show what is in a model: toggles, zeros, and the most that could be saved",
	ArgsUsage: "MODEL",
	Flags:     flags([]cli.Flag{&cli.BoolFlag{Name: "tensors", Usage: "a row for every tensor"}, workloadFlag, roleFlag, archFlag}, commonFlags),
	Action: func(c *cli.Context) error {
		args, err := arguments(c, "MODEL")
		if err != nil {
			return err
		}
		m, err := weights.Open(args[0])
		if err != nil {
			return err
		}
		defer m.Close()
		r, err := inspect(c, m)
		if err != nil {
			return err
		}
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

func inspect(c *cli.Context, m *weights.Model) (*inspectJSON, error) {
	w, role, err := workload(c)
	if err != nil {
		return nil, err
	}
	n, err := workers(c)
	if err != nil {
		return nil, err
	}
	fam, err := family(c)
	if err != nil {
		return nil, err
	}
	layout, unknown, err := transform.Resolve(m, fam)
	if err != nil {
		return nil, err
	}
	r := &inspectJSON{Model: m.Dir, workload: w, role: role}
	if layout != nil {
		r.Family = layout.Family
	} else {
		r.Note = unknown.Error()
	}
	event, end := newProgress(c)
	defer end()
	var done int64
	err = m.Each(func(t weights.Tensor) error {
		it := inspectTensor{Name: t.Name, DType: t.DType.String(), Shape: t.Shape, Bytes: t.Size(),
			Kind: kindOf(layout, t.Name), Linear: transform.Linear(layout, t.Info)}
		outAxis := 0
		if layout != nil && layout.Claims[t.Name] != nil {
			it.Role, outAxis = layout.Claims[t.Name].Role.String(), layout.Claims[t.Name].OutAxis
		}
		if _, ok := t.DType.Format(); ok {
			a, err := cost.Measure(c.Context, t, n)
			if err != nil {
				return err
			}
			it.Activity = &a
			if it.Linear {
				e := predictor.Energy(a, outAxis, role, w)
				it.Predicted = &e
			}
		}
		r.add(it, t.Len())
		done += t.Size()
		event(transform.Event{Stage: "inspect", Done: done, Total: m.Size()})
		return c.Context.Err()
	})
	if err != nil {
		return nil, err
	}
	if e := r.Total.Energy; e != nil {
		r.Ceiling = &inspectCeiling{cost.Rough{}.Ceiling(role, w) / e.Relative, e.Calibration}
	}
	return r, nil
}

// add takes a tensor into the report; energies of layers are averaged by their weights.
func (r *inspectJSON) add(t inspectTensor, elements int) {
	r.Tensors = append(r.Tensors, t)
	tot := &r.Total
	tot.Tensors++
	tot.Elements += elements
	tot.Bytes += t.Bytes
	if t.Activity != nil {
		tot.NaN += t.NaN
		tot.Inf += t.Inf
	}
	if t.Predicted == nil || elements == 0 {
		return
	}
	tot.Linear += elements
	if tot.Energy == nil {
		e := *t.Predicted
		tot.Energy = &e
		return
	}
	share := float64(elements) / float64(tot.Linear)
	tot.Energy.Relative += share * (t.Predicted.Relative - tot.Energy.Relative)
	for i := range tot.Energy.Interval {
		tot.Energy.Interval[i] += share * (t.Predicted.Interval[i] - tot.Energy.Interval[i])
	}
}

// print shows the report, a row per kind of tensor or per tensor.
func (r *inspectJSON) print(w io.Writer, each bool) {
	fmt.Fprintf(w, "%s: ", r.Model)
	if r.Family != "" {
		fmt.Fprintf(w, "family %s, ", r.Family)
	}
	fmt.Fprintf(w, "%s tensors, %s weights, %s\n", count(r.Total.Tensors), count(r.Total.Elements), size(r.Total.Bytes))
	if r.Note != "" {
		fmt.Fprintf(w, "note: %s\n", r.Note)
	}
	fmt.Fprintln(w)
	groups := map[string][]inspectTensor{}
	var order []string
	for _, t := range r.Tensors {
		key := t.Kind
		if each {
			key = t.Name
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], t)
	}
	if !each {
		sort.Strings(order)
	}
	tab := newTable("tensors", "n", "dtype", "weights", "row toggles", "mem. toggles", "ones", "zeros", "energy*")
	for _, key := range order {
		tab.add(inspectRow(key, groups[key])...)
	}
	tab.print(w)
	fmt.Fprintln(w, "\ntoggles: bits that differ between neighbours (rows: same column; memory: along the file),")
	fmt.Fprintln(w, "in bits per value; *: of a product, relative to random weights, predicted")
	if c := r.Ceiling; c != nil {
		fmt.Fprintf(w, "at the very most, with all weights zero: %s energy for %s, weights %s\n(%s)\n",
			percent(c.Relative), r.workload, r.role, c.Calibration)
	}
	if r.Total.NaN+r.Total.Inf > 0 {
		fmt.Fprintf(w, "warning: %d NaN and %d infinite values\n", r.Total.NaN, r.Total.Inf)
	}
}

// inspectRow sums up tensors of one kind.
func inspectRow(key string, list []inspectTensor) []string {
	var rows, mem, ones, zeros, rowPairs, memPairs, elements float64
	var energy, layers float64
	weights := 0
	for _, t := range list {
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		weights += n
		if a := t.Activity; a != nil {
			rows += float64(a.RowToggles.Total())
			mem += float64(a.MemoryToggles.Total())
			ones += float64(a.Ones.Total())
			zeros += float64(a.Zeros)
			rowPairs += float64(a.RowPairs())
			memPairs += float64(a.MemoryPairs())
			elements += float64(a.Elements)
		}
		if t.Predicted != nil {
			energy += float64(n) * t.Predicted.Relative
			layers += float64(n)
		}
	}
	per := func(format string, sum, n float64) string {
		if n == 0 {
			return "–"
		}
		return fmt.Sprintf(format, sum/n)
	}
	return []string{key, count(len(list)), list[0].DType, count(weights), per("%.2f", rows, rowPairs), per("%.2f", mem, memPairs),
		per("%.2f", ones, elements), per("%.2f %%", 100*zeros, elements), per("%.3f", energy, layers)}
}
