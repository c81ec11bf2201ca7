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
	"sync/atomic"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/progress"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Class is what became of a tensor.
type Class string

const (
	Identical   Class = "identical"   // the same bytes
	Exact       Class = "exact"       // a permutation, sign or power-of-two image
	Compensated Class = "compensated" // shifted, or takes part in a fold
	Lossy       Class = "lossy"
	Untouched   Class = "untouched" // the same bytes, and no part of the family
)

// Tensor is the finding about one tensor.
type Tensor struct {
	Name   string `json:"name"`
	Kind   string `json:"kind,omitempty"` // the type of layer
	Linear bool   `json:"linear"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	Class  Class  `json:"class"`
	// SNR is the signal-to-noise ratio of the layer's output for inputs of unit variance, in
	// decibels; absent where nothing was lost, and where the source has no signal.
	SNR *float64 `json:"snr_db,omitempty"`
	// BitsZeroed counts the low mantissa bits that are zero in every finite value of the output,
	// beyond those that were zero before. In JSON it is absent where the type's values are not known.
	BitsZeroed int `json:"-"`
	// ZerosAdded counts values that became zero.
	ZerosAdded int `json:"zeros_added,omitempty"`
	// NonFinite counts NaN and infinite values; all are the source's own.
	NonFinite int `json:"non_finite,omitempty"`
	// Relation says where rows, columns, signs and exponents went; absent where nothing moved.
	Relation *Relation `json:"relation,omitempty"`
	// Shift is the constant that was added to every weight.
	Shift *float64 `json:"shift,omitempty"`
	// Problem says what breaks the manifest's claims.
	Problem string `json:"problem,omitempty"`
}

// MarshalJSON adds the count of zero bits where it means something.
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

// Relation summarises an exact image.
type Relation struct {
	RowsMoved   int `json:"rows_moved,omitempty"`
	ColsMoved   int `json:"columns_moved,omitempty"`
	RowsFlipped int `json:"rows_flipped,omitempty"`
	ColsFlipped int `json:"columns_flipped,omitempty"`
	RowsScaled  int `json:"rows_scaled,omitempty"`
	ColsScaled  int `json:"columns_scaled,omitempty"`
	// Source is "found" where the data alone showed the relation, "claimed" where the manifest
	// named it and the data agree with it.
	Source string `json:"source"`
}

// Report is the whole finding.
type Report struct {
	OK      bool     `json:"ok"`
	Tensors []Tensor `json:"tensors"`
	// Problems are those of files and of the model as a whole.
	Problems []string `json:"problems,omitempty"`
	DropIn   bool     `json:"drop_in"`
	// Plan is the one that the output's manifest claims, nil without a manifest.
	Plan *plan.Plan `json:"-"`
}

// Options of Models.
type Options struct {
	Family   *arch.Family      // nil: the catalogue's, by config.json
	Checks   map[string]*Check // of the passes that the plan may name; required
	Workers  int               // goroutines; default: all processors
	Progress func(progress.Event)
}

// Models compares a converted model with its source. The error is about reading; what is found to
// be wrong is in the report.
func Models(ctx context.Context, src, out *weights.Model, o Options) (*Report, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(progress.Event) {}
	}
	r := &Report{DropIn: true}
	man, err := plan.ReadManifest(out.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.problem("%s has no %s: nothing says what was done to it", out.Dir, plan.ManifestName)
	case err != nil:
		r.problem("%v", err)
	default:
		r.Plan, r.DropIn = man.Plan, man.Plan.DropIn
		if man.DropIn != man.Plan.DropIn {
			r.problem("the manifest says \"drop_in\": %v, and its plan says otherwise", man.DropIn)
		}
		if err := man.Plan.CheckModel(src); err != nil {
			r.problem("%v", err)
		}
	}
	layout, err := arch.ResolveIfKnown(src, o.Family)
	if err != nil && (r.Plan == nil || r.Plan.Model.Family != "") {
		return nil, err
	}
	claims, err := newClaims(src, layout, r.Plan, o.Checks)
	if err != nil {
		r.problem("the manifest's plan does not fit the source: %v", err)
		if claims, err = newClaims(src, layout, nil, nil); err != nil {
			return nil, err
		}
	}
	if err := r.files(ctx, src, out, man, o); err != nil {
		return nil, err
	}
	if err := r.tensors(ctx, src, out, claims, o); err != nil {
		return nil, err
	}
	r.OK = len(r.Problems) == 0
	for _, t := range r.Tensors {
		r.OK = r.OK && t.Problem == ""
	}
	return r, nil
}

func (r *Report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// tensors compares all tensors, several at a time, in the source's order, the adapter's last.
func (r *Report) tensors(ctx context.Context, src, out *weights.Model, claims *claims, o Options) error {
	var pairs [][2]weights.Tensor
	var total int64
	pair := func(a weights.Tensor) error {
		b, ok := out.Tensor(a.Name)
		switch {
		case !ok:
			r.problem("tensor %q is missing from the output", a.Name)
		case a.DType != b.DType || fmt.Sprint(a.Shape) != fmt.Sprint(b.Shape):
			r.problem("tensor %q is %s%v, was %s%v", a.Name, b.DType, b.Shape, a.DType, a.Shape)
		default:
			if is, was := filepath.Base(b.File), filepath.Base(a.File); is != was {
				r.problem("tensor %q is in the shard %s, was in %s", a.Name, is, was)
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
			if _, ok := src.Tensor(b.Name); !ok && !claims.extra(b.Name) {
				r.problem("tensor %q of the output has no source", b.Name)
			}
		}
	}
	if err := claims.extras(out, r.problem); err != nil {
		return err
	}
	r.Tensors = make([]Tensor, len(pairs))
	var done atomic.Int64
	return parallel.Run(ctx, len(pairs), o.Workers, func(ctx context.Context, i int) error {
		p := pairs[i]
		err := weights.Guard(p[0].File+" or "+p[1].File, func() (err error) {
			r.Tensors[i], err = claims.look(ctx, p[0], p[1])
			return err
		})
		o.Progress(progress.Event{Stage: "verify", Done: done.Add(p[0].Size()), Total: total})
		return err
	})
}

// decibels is nil where there is no noise, and where the ratio is no number.
func decibels(signal, noise float64) *float64 {
	if noise == 0 {
		return nil
	}
	db := 10 * math.Log10(signal/noise)
	if math.IsInf(db, 0) || math.IsNaN(db) {
		return nil
	}
	return &db
}
