package transform

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// ConvertOptions are the options of [Convert].
type ConvertOptions struct {
	Options            // options of the plan
	Given   *plan.Plan // the plan to carry out; nil: make one
	Resume  bool       // continue an interrupted call
	Folder  FolderOptions
	// Replace is the existing folder that out replaces, from [apply.OpenMade]; nil: out must be new or empty.
	Replace *apply.Made
	Store   apply.Store // object store of out; nil: out is on a disk
	Version string      // version of the program; required with Store
}

// Conversion is the result of [Convert].
type Conversion struct {
	Plan     *plan.Plan
	Manifest *plan.Manifest // nil if the folder could not be written
	// Loss compares the result with the source on the evaluation tokens; nil without tokens.
	Loss *evaluate.Comparison
}

// WithinBudget reports whether the loss on the evaluation tokens rose by at most the plan's budget. Without a budget
// of loss or without tokens, it returns true.
func (c *Conversion) WithinBudget() bool {
	most := c.Plan.Request.MaxLoss
	return most == nil || c.Loss == nil || c.Loss.Difference <= *most
}

// Convert plans a conversion and writes the folder out. With tokens, it compares the result with the source before the
// folder gets its name, so the model card contains the loss. If a step fails, Convert returns the error and the
// results of the earlier steps. The results are nil if there is no plan.
func Convert(ctx context.Context, m *weights.Model, out string, o ConvertOptions) (*Conversion, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	format, err := formatOf(o.Given, o.Format)
	if err != nil {
		return nil, err
	}
	which := o.Selection
	if o.Given != nil {
		which = o.Given.Request.Selection
	}
	s, err := openSource(m, o.Family, o.Tokens, o.count, format, which)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.checkOut(out, o.Store, o.Resume, o.Replace), s.useReference(o.Reference)); err != nil {
		return nil, err
	}
	p, h := o.Given, o.Hessians
	if p == nil {
		if p, err = makePlan(ctx, s, o.Options); err != nil {
			return nil, errors.Join(err, o.Tokens.releaseRounder())
		}
		h = s.hessians
	} else if err := p.CheckFingerprint(m.Dir, s.fingerprint); err != nil {
		return nil, err
	}
	c := &Conversion{Plan: p}
	var notCompared error
	comparing := func(ctx context.Context, open func() (*weights.Model, error)) *evaluate.Comparison {
		if o.Tokens != nil {
			c.Loss, notCompared = compare(ctx, open, o)
		}
		return c.Loss
	}
	c.Manifest, err = applyPlan(ctx, s, p, out, ApplyOptions{Table: o.Table, Family: o.Family, Hessians: h, Tokens: o.Tokens,
		Workers: o.Workers, Resume: o.Resume, Replace: o.Replace, Progress: o.Progress, Folder: o.Folder, Store: o.Store, Version: o.Version}, comparing)
	if err != nil {
		return c, err
	}
	if o.Tokens != nil && o.Store != nil && c.Loss == nil && notCompared == nil { // an earlier call has finished the result
		c.Loss, notCompared = compare(ctx, func() (*weights.Model, error) { return weights.OpenStore(ctx, o.Store, "") }, o)
	}
	return c, notCompared
}

// compare compares the result with the source on the evaluation tokens.
func compare(ctx context.Context, open func() (*weights.Model, error), o ConvertOptions) (*evaluate.Comparison, error) {
	result, err := open()
	if err != nil {
		return nil, err
	}
	defer result.Close()
	loss, err := o.Tokens.Compare(ctx, result, o.Progress)
	if err != nil {
		return nil, fmt.Errorf("comparing losses: %w", err)
	}
	return loss, nil
}
