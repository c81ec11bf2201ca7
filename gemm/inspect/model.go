package inspect

import (
	"context"
	"errors"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Event reports progress, in bytes.
type Event = progress.Event

// Options are the options of [Model].
type Options struct {
	Calibration *cost.Calibration // predicts energies; required
	Role        cost.Role
	Workload    cost.Workload // required; see [cost.DefaultWorkload]
	Family      *arch.Family  // default: the family in the catalogue that fits
	Workers     int           // goroutines; default: one for each processor
	Progress    func(Event)   // default: none
}

// Model returns a report on all tensors of a model. For an unknown family the report has no roles and no linear layers. Errors
// are those of reading the model, of [arch.Resolve], and of ctx.
func Model(ctx context.Context, m *weights.Model, o Options) (*Report, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if m == nil || o.Calibration == nil {
		return nil, errors.New("inspecting needs a model and a calibration")
	}
	if err := m.Usable(); err != nil {
		return nil, err
	}
	q, err := quant.Describe(m)
	if err != nil {
		return nil, err
	}
	layout, err := arch.ResolveDescribed(m, o.Family, q)
	if err != nil && !errors.Is(err, arch.ErrUnknownFamily) {
		return nil, err
	}
	r := &Report{Tensors: []Tensor{}, Method: q.Method, Formats: q.Formats(), Quantised: q.Copied()}
	if layout != nil {
		r.Family, r.Untouched, r.Blocked = layout.Family, layout.UnclaimedGroups(), layout.BlockedIndices()
	} else {
		r.Note = "the family is not known: " + err.Error()
	}
	r.Adapter = adapterOf(m, layout)
	var done int64
	counted := map[string]*cost.Activity{}
	err = m.Each(func(t weights.Tensor) error {
		one, err := tensor(ctx, t, layout, q, o)
		if err != nil {
			return err
		}
		r.add(one)
		counted[t.Name] = one.Activity
		done += t.Size()
		if o.Progress != nil {
			o.Progress(Event{Stage: "inspect", Done: done, Total: m.Size()})
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	if r.Weights, err = quantisedWeights(ctx, layout, q, counted, o); err != nil {
		return nil, err
	}
	for _, w := range r.Weights {
		r.Total.addLayer(w.Predicted, w.Shape[0]*w.Shape[1], w.layer)
	}
	r.Kernels, r.Coverage = r.Total.kernels(o), predict.CoverageOf(m, layout)
	return r, r.conclude(func(l layerShape) (cost.Estimate, error) {
		return o.Calibration.Ceiling(l.multiplied(), l.outputs, l.inputs, o.Role, o.Workload)
	})
}

// tensor counts the toggles of one tensor and predicts its energy if it is a linear layer.
func tensor(ctx context.Context, t weights.Tensor, layout *arch.Layout, q *quant.Description, o Options) (one Tensor, err error) {
	axis := layout.OutAxis(t.Name)
	one = Tensor{Name: t.Name, DType: t.DType.String(), Shape: append([]int{}, t.Shape...), Bytes: t.Size(),
		Kind: layout.Kind(t.Name), Linear: layout.IsLinear(t.Info), elements: t.Len(), layer: shapeOf(t.Info, axis)}
	if layout != nil && layout.Claims[t.Name] != nil {
		one.Role = layout.Claims[t.Name].Role.String()
	}
	if f, part, ok := q.Tensor(t.Name); ok {
		one.Linear, one.Quantised, one.Part = false, f.String(), part
		one.read = q.Readable(t.Name)
	}
	if _, ok := t.DType.Format(); !ok {
		return one, nil
	}
	one.Activity, err = measured(ctx, t, o.Workers)
	if err != nil || !one.Linear || t.Len() == 0 {
		return one, err
	}
	e, err := predict.Tensor(ctx, o.Calibration, t, t, axis, o.Role, o.Workload)
	one.Predicted = &e
	return one, err
}

func adapterOf(m *weights.Model, layout *arch.Layout) *Adapter {
	if m.Adapter == nil {
		return nil
	}
	a := &Adapter{File: weights.AdapterName, Tensors: len(m.Adapter.Tensors)}
	if layout != nil {
		a.Changes, a.Problem = len(layout.Adapter.Changes), layout.Adapter.Problem
	}
	return a
}
