package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Class says how a tensor changed.
type Class string

const (
	Identical   Class = "identical"   // the same bytes
	Exact       Class = "exact"       // permuted, or multiplied by signs or powers of two
	Compensated Class = "compensated" // shifted, or part of a fold
	Rescaled    Class = "rescaled"    // the same codes of a quantised weight under other scales, so the values changed
	Lossy       Class = "lossy"       // values changed in another way
	Untouched   Class = "untouched"   // the same bytes; the tensor is unknown to the family, or belongs to a quantised weight
)

// Tensor is the report on one tensor.
type Tensor struct {
	Name   string `json:"name"`
	Kind   string `json:"kind,omitempty"` // the type of layer
	Linear bool   `json:"linear"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	Class  Class  `json:"class"`
	// Part is the role of a quantised weight's tensor without codes, such as its scales; empty for other tensors.
	Part quant.Role `json:"part,omitempty"`
	// SNR is the signal-to-noise ratio in dB of the layer's output relative to the source's output, for independent
	// inputs of unit variance. It is nil if nothing was lost, or if the source is all zeros.
	SNR *float64 `json:"snr_db,omitempty"`
	// ReferenceSNR is the output SNR in dB of a quantised layer relative to the reference. SourceReferenceSNR is the
	// output SNR in dB of the source's layer relative to the reference. Both are nil without a reference.
	ReferenceSNR       *float64 `json:"reference_snr_db,omitempty"`
	SourceReferenceSNR *float64 `json:"source_reference_snr_db,omitempty"`
	// BitsZeroed is the number of low mantissa bits that are zero in every finite value of the output, but not of the
	// source. JSON omits it for dtypes that lowtoggle cannot decode.
	BitsZeroed int `json:"-"`
	// ZerosAdded counts values that became zero.
	ZerosAdded int `json:"zeros_added,omitempty"`
	// NonFinite counts NaN and infinite values.
	NonFinite int `json:"non_finite,omitempty"`
	// Relation counts the permuted, flipped and scaled rows and columns; nil if there are none.
	Relation *Relation `json:"relation,omitempty"`
	// Shift is the constant that was added to every weight; nil for none.
	Shift *float64 `json:"shift,omitempty"`
	// Problem describes how the tensor differs from the manifest's claims; empty if it agrees.
	Problem string `json:"problem,omitempty"`
}

// MarshalJSON adds the count of zero bits for dtypes that lowtoggle can decode.
func (t Tensor) MarshalJSON() ([]byte, error) {
	type plain Tensor
	js := struct {
		plain
		BitsZeroed *int `json:"bits_zeroed,omitempty"`
	}{plain: plain(t)}
	if d, err := weights.ParseDType(t.DType); err == nil {
		if _, known := d.Format(); known {
			js.BitsZeroed = &t.BitsZeroed
		}
	}
	return json.Marshal(js)
}

// Relation summarises an exact change of a tensor.
type Relation struct {
	RowsMoved   int `json:"rows_moved,omitempty"`
	ColsMoved   int `json:"columns_moved,omitempty"`
	RowsFlipped int `json:"rows_flipped,omitempty"`
	ColsFlipped int `json:"columns_flipped,omitempty"`
	RowsScaled  int `json:"rows_scaled,omitempty"`
	ColsScaled  int `json:"columns_scaled,omitempty"`
	// Source is "found" if the data alone show the relation, and "claimed" if only the manifest does.
	Source string `json:"source"`
}

// Report is the report on a model. OK is true if neither the model nor a tensor has a problem.
type Report struct {
	OK      bool     `json:"ok"`
	Tensors []Tensor `json:"tensors"`
	// Problems are the problems of files and of the whole model.
	Problems []string `json:"problems,omitempty"`
	// DropIn is true if every runtime that can use the source can use the output.
	DropIn bool `json:"drop_in"`
	// Quantised are the tensors of the source's quantised weights that must have the source's bytes.
	Quantised []quant.Copied `json:"quantised,omitempty"`
	// Plan is the plan in the output's manifest; nil without a manifest.
	Plan *plan.Plan `json:"-"`
	// SourceChanged is true if the source's shards differ from the source that was converted, by the manifest's
	// SHA-256, and the output's shards agree with the manifest.
	SourceChanged bool `json:"-"`
}

// Options are the options of [Models].
type Options struct {
	Family *arch.Family // nil: the catalogue's family for config.json
	// Reference is the model that the codes should approximate. Default: claims relative to a reference are not
	// checked.
	Reference *weights.Model
	Checks    map[string]*Check // checks of all passes in the plan; required
	Workers   int               // goroutines; default: all processors
	Progress  func(progress.Event)
}

// Models compares a converted model with its source. The report lists the problems of the result. It returns an error
// if a file cannot be read, if config.json names no usable family, and if ctx ends.
func Models(ctx context.Context, src, out *weights.Model, o Options) (*Report, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	for _, m := range []*weights.Model{src, out} {
		if err := m.Usable(); err != nil {
			return nil, err
		}
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(progress.Event) {}
	}
	r := &Report{DropIn: true}
	man, err := plan.ManifestOf(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.problem("%s has no %s, so the conversion's steps cannot be checked: copy the folder again with this file, or convert again", out.Dir, plan.ManifestName)
	case plan.Unread(err):
		return nil, err
	case err != nil:
		r.problem("%v", err)
	default:
		r.Plan, r.DropIn = man.Plan, man.Plan.DropIn && man.Plan.Request.Format == ""
		if man.DropIn != man.Plan.DropIn {
			r.problem("the manifest says \"drop_in\": %v, but the manifest's plan says the opposite", man.DropIn)
		}
		if err := man.Plan.CheckModel(src); err != nil {
			r.problem("%v", err)
		}
	}
	q, err := quant.Describe(src)
	if err != nil {
		return nil, err
	}
	layout, err := arch.ResolveIfKnown(src, o.Family)
	if err != nil && (r.Plan == nil || r.Plan.Model.Family != "") {
		return nil, err
	}
	var made *quant.Description
	if r.reformatted() {
		if made, err = quant.Describe(out); err != nil {
			r.problem("%v", err)
		} else if !made.Any() {
			r.problem("the plan stores weights as %s, and the output has no quantised weights", r.Plan.Request.Format)
		}
	}
	claims, err := newClaims(src, layout, q, made, r.Plan, o.Checks)
	if err != nil {
		r.problem("the manifest's plan does not fit the source: %v", err)
		if claims, err = newClaims(src, layout, q, made, nil, nil); err != nil {
			return nil, err
		}
	}
	changed, moved := map[string]bool{}, map[string]bool{}
	for name := range claims.steps {
		changed[name] = true
	}
	if q != nil {
		for _, w := range q.Weights {
			if _, moved[w.Name] = claims.image(w.Name); moved[w.Name] {
				changed[w.Name] = true
			}
		}
	}
	r.Quantised = q.CopiedBut(changed, moved)
	if claims.result, err = quant.Describe(out); err != nil && len(changed) > 0 {
		r.problem("%v", err)
	}
	if o.Reference != nil {
		if err := r.useReference(claims, o.Reference); err != nil {
			return nil, err
		}
	}
	if err := r.files(ctx, src, out, man, o); err != nil {
		return nil, err
	}
	if err := r.tensors(ctx, src, out, claims, o); err != nil {
		return nil, err
	}
	r.leftAlone(claims, q)
	r.OK = len(r.Problems) == 0
	for _, t := range r.Tensors {
		r.OK = r.OK && t.Problem == ""
	}
	return r, nil
}

func (r *Report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// tensors compares all tensors in parallel. The report lists them in the source's order, with the adapter's tensors
// last.
func (r *Report) tensors(ctx context.Context, src, out *weights.Model, claims *claims, o Options) error {
	var pairs [][2]weights.Tensor
	var total int64
	pair := func(a weights.Tensor) error {
		if w := claims.madeOf(a.Name); w != nil {
			r.sameShard(a, w)
			pairs = append(pairs, [2]weights.Tensor{a, w.Tensors[0].Tensor})
			total += a.Size()
			return nil
		}
		b, ok := out.Tensor(a.Name)
		switch {
		case !ok:
			r.problem("tensor %q is missing from the output", a.Name)
		case a.DType != b.DType || fmt.Sprint(a.Shape) != fmt.Sprint(b.Shape):
			r.problem("tensor %q is %s%v, and the source's is %s%v", a.Name, b.DType, b.Shape, a.DType, a.Shape)
		default:
			if is, was := filepath.Base(b.File), filepath.Base(a.File); is != was {
				r.problem("tensor %q is in the shard %s, and the source's is in %s", a.Name, is, was)
			}
			pairs = append(pairs, [2]weights.Tensor{a, b})
			total += a.Size()
		}
		return nil
	}
	for _, f := range src.Files() {
		if err := f.Each(pair); err != nil {
			return err
		}
	}
	for _, f := range out.Files() {
		for _, b := range f.Tensors {
			if _, ok := src.Tensor(b.Name); !ok && !claims.extra(b.Name) && !claims.made.Holds(b.Name) {
				r.problem("tensor %q of the output is not in the source", b.Name)
			}
		}
	}
	if err := claims.extras(out, r.problem); err != nil {
		return err
	}
	r.Tensors = make([]Tensor, len(pairs))
	var largest int64
	for _, p := range pairs {
		largest = max(largest, claims.stored(p[0], p[1]))
	}
	var room *window
	if largest > 0 {
		room = newWindow(largest)
	}
	var done atomic.Int64
	return parallel.Run(ctx, len(pairs), o.Workers, func(ctx context.Context, i int) error {
		p := pairs[i]
		leave, err := room.enter(ctx, claims.stored(p[0], p[1]))
		if err != nil {
			return err
		}
		defer leave()
		err = weights.Guard(p[0].File+" or "+p[1].File, func() (err error) {
			weights.Need(p[0].Data)
			weights.Need(p[1].Data)
			if w := claims.madeOf(p[0].Name); w != nil {
				r.Tensors[i], err = claims.lookMade(ctx, p[0], w)
				return err
			}
			r.Tensors[i], err = claims.look(ctx, p[0], p[1])
			return err
		})
		o.Progress(progress.Event{Stage: "verify", Done: done.Add(p[0].Size()), Total: total})
		return err
	})
}

// inDecibels formats a signal-to-noise ratio in dB for a message.
func inDecibels(v float64) string {
	return strings.Replace(fmt.Sprintf("%.2f dB", v), "-", "−", 1)
}

// decibels returns a ratio in dB; nil if there is no noise or no signal.
func decibels(signal, noise float64) *float64 {
	if noise == 0 {
		return nil
	}
	db := 10 * elementary.Log10(signal/noise)
	if math.IsInf(db, 0) || math.IsNaN(db) {
		return nil
	}
	return &db
}
