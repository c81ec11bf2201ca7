package transform

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// ApplyOptions are the options of [Apply].
type ApplyOptions struct {
	Table    Table            // table of the plan's passes; default: Passes
	Family   *arch.Family     // nil: the family of Tokens or, without Tokens, the catalogue's family for config.json
	Hessians program.Hessians // calibration statistics of the plan's tokens; nil: computed from Tokens
	Tokens   *Tokens          // required if the plan was made with tokens
	// Reference is required if the plan was made with a reference; see [Options].
	Reference *weights.Model
	Workers   int         // goroutines; default: all processors
	Resume    bool        // continue an interrupted call
	Replace   *apply.Made // existing folder that out replaces; nil: out must be new or empty
	Store     apply.Store // object store of out; nil: out is on a disk
	Version   string      // version of the program; required with Store and for parts, and equal in all parts
	Progress  func(Event) // nil: none; called from several goroutines
	Folder    FolderOptions
}

// FolderOptions choose the files beside the weights of a result. If their field BaseModel is empty, the model card
// names the model that the function [BaseModel] returns.
type FolderOptions = plan.Folder

// errNoPlan is the error for a nil plan.
var errNoPlan = fmt.Errorf("%w: no plan was given", plan.ErrInvalid)

// Apply carries out a plan. It writes a new folder out with the transformed tensors, the other files of the model's
// folder, a model card, and [plan.ManifestName]. The folder appears whole or not at all; see [apply.Run]. Before
// anything is written, Apply returns an error for the plan of another model, and for an out that exists or lies
// inside the model's folder.
func Apply(ctx context.Context, m *weights.Model, p *plan.Plan, out string, o ApplyOptions) (*plan.Manifest, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if p == nil {
		return nil, errNoPlan
	}
	format, err := formatOf(p, quantise.Format{})
	if err != nil {
		return nil, err
	}
	s, err := openSource(m, o.Family, o.Tokens, nil, format, p.Request.Selection)
	if err != nil {
		return nil, err
	}
	if err := p.CheckFingerprint(m.Dir, s.fingerprint); err != nil {
		return nil, err
	}
	if err := s.checkOut(out, o.Store, o.Resume, o.Replace); err != nil {
		return nil, err
	}
	if err := s.useReference(o.Reference); err != nil {
		return nil, err
	}
	return applyPlan(ctx, s, p, out, o, nil)
}

// formatOf returns the quantised format that plan p requests. If p is nil or requests none, it returns asked.
func formatOf(p *plan.Plan, asked quantise.Format) (quantise.Format, error) {
	if p == nil || p.Request.Format == "" {
		return asked, nil
	}
	f, err := quantise.Parse(p.Request.Format)
	if err != nil {
		err = fmt.Errorf("%w: %w", plan.ErrInvalid, err)
	}
	return f, err
}

// comparing compares a result with the source. open opens the result before it appears under its name. The comparison
// is nil if none was made.
type comparing func(ctx context.Context, open func() (*weights.Model, error)) *evaluate.Comparison

// applyPlan writes the folder out, which the caller has checked. The model card has the result of compare, which may
// be nil.
func applyPlan(ctx context.Context, s *source, p *plan.Plan, out string, o ApplyOptions, compare comparing) (_ *plan.Manifest, err error) {
	src, err := s.toApply(ctx, p, &o)
	if err != nil {
		return nil, err
	}
	free := sync.OnceValue(func() error {
		s.results.Clear()
		return o.Tokens.releaseRounder()
	})
	defer func() { err = errors.Join(err, free()) }()
	if run := compare; run != nil {
		compare = func(ctx context.Context, open func() (*weights.Model, error)) *evaluate.Comparison {
			free() // models need the memory; the error is returned at the end
			return run(ctx, open)
		}
	}
	return apply.Run(ctx, src, p, out, apply.Options{Workers: parallel.Workers(o.Workers), Resume: o.Resume, Replace: o.Replace, Progress: o.Progress,
		Store: o.Store, Version: o.Version, Folder: o.Folder, Card: o.card(s, p, compare)})
}

// card makes the result's model card from the source's card.
func (o *ApplyOptions) card(s *source, p *plan.Plan, compare comparing) apply.CardFunc {
	table := o.Table
	if table == nil {
		table = Passes
	}
	return func(ctx context.Context, open func() (*weights.Model, error), readme []byte) ([]byte, error) {
		layout, err := s.layoutOf(p)
		if err != nil {
			return nil, err
		}
		var loss *evaluate.Comparison
		if compare != nil {
			loss = compare(ctx, open)
		}
		return table.card(s.Model, p, layout, o.Folder, loss, readme)
	}
}

// toApply checks that a plan fits the source, and compiles the plan's steps.
func (s *source) toApply(ctx context.Context, p *plan.Plan, o *ApplyOptions) (src apply.Source, err error) {
	if o.Table == nil {
		o.Table = Passes
	}
	layout, err := s.layoutOf(p)
	if err := errors.Join(err, o.Table.check(p), s.checkCustomCode(p)); err != nil {
		return src, err
	}
	if o.Table.Moves(p) {
		if err := checkAdapters(s.Model, layout); err != nil {
			return src, err
		}
	}
	if err := o.useTokens(ctx, s, p); err != nil {
		return src, err
	}
	if err := errors.Join(program.CheckHessians(p, o.Hessians), s.checkReference(p)); err != nil {
		return src, err
	}
	if s.compiled != p {
		if s.compiler, err = s.compile(layout, o.Hessians, o.Table, p.Steps); err != nil {
			return src, err
		}
	}
	return apply.Source{Model: s.Model, Weights: s.weights, Compiler: s.compiler, Target: s.target}, nil
}

// useTokens computes the calibration statistics that a plan needs.
func (o *ApplyOptions) useTokens(ctx context.Context, s *source, p *plan.Plan) (err error) {
	if o.Hessians != nil || o.Tokens == nil || p.Request.Hessians == "" {
		return nil
	}
	t := o.Tokens
	if err := t.checkDevice(p); err != nil {
		return err
	}
	o.Hessians = hessians{key: t.Key()} // only the key is needed, to reject other tokens
	if p.Request.Hessians != t.Key() {
		return nil
	}
	t.count = s.count
	defer func() { err = errors.Join(err, t.release()) }()
	h, err := t.hessians(ctx, false, parallel.Workers(o.Workers), o.Progress)
	if err != nil {
		return err
	}
	o.Hessians = h
	return t.checkStatistics(p, h)
}

// CheckOut returns an error if the output folder exists and is not empty, or lies inside the model's folder or the output
// of a conversion. An unfinished conversion there is an error unless resume is true. [Apply] calls CheckOut; a caller may call it
// earlier, before planning.
func CheckOut(m *weights.Model, out string, resume bool) error {
	return apply.CheckOut(m, out, resume, nil)
}

// Unfinished returns the plan of an interrupted conversion to out. The plan is nil if there is no such conversion, or
// if it was interrupted before the plan was written.
func Unfinished(out string) (*plan.Plan, error) { return apply.Unfinished(out) }

// VerifyOptions are the options of [Verify].
type VerifyOptions struct {
	Table  Table        // its checks test the plan's steps; default: Passes
	Family *arch.Family // nil: the catalogue's family for config.json
	// Reference is the model that the codes approximate. Default: claims relative to a reference are not checked.
	Reference *weights.Model
	Workers   int         // goroutines; default: all processors
	Progress  func(Event) // nil: none; called from several goroutines
}

// Verify compares a converted model with its source. It uses no code of the conversion; see package verify. The
// report lists the problems of the result. The error reports files that cannot be read.
func Verify(ctx context.Context, src, out *weights.Model, o VerifyOptions) (*verify.Report, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if o.Table == nil {
		o.Table = Passes
	}
	return verify.Models(ctx, src, out, verify.Options{Family: o.Family, Checks: o.Table.checks(), Reference: o.Reference, Workers: o.Workers, Progress: o.Progress})
}

// ReadPlan reads a plan from a plan file or a manifest, and checks that its steps belong to passes of the table.
func (t Table) ReadPlan(path string) (*plan.Plan, error) {
	js, err := bounded.ReadFile(path, bounded.Plan)
	if err != nil {
		return nil, err
	}
	return t.DecodePlan(path, js)
}

// DecodePlan is [Table.ReadPlan] for the content of a file. The file name in the path or URL decides whether the
// content is a manifest.
func (t Table) DecodePlan(path string, js []byte) (p *plan.Plan, err error) {
	if filepath.Base(path) == plan.ManifestName {
		var man *plan.Manifest
		if man, err = plan.DecodeManifest(path, js); err == nil {
			p = man.Plan
		}
	} else if p, err = plan.Decode(js); err != nil {
		err = weights.FileErrorf(path, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	if err := t.check(p); err != nil {
		return nil, weights.FileErrorf(path, "%w", err)
	}
	return p, nil
}
