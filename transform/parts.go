package transform

import (
	"context"
	"errors"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// PartOptions are the options of [ApplyPart] and [FinishParts]. Resume has no effect, because a part always keeps its
// written shards.
type PartOptions struct {
	ApplyOptions
	Patience int // of [FinishParts]; see [apply.PartOptions]
}

func (o *PartOptions) of() apply.PartOptions {
	return apply.PartOptions{Workers: parallel.Workers(o.Workers), Version: o.Version, Patience: o.Patience, Progress: o.Progress, Store: o.Store}
}

// ApplyPart writes one part of the shards of [Apply]; see [apply.RunPart]. Parts are independent and may run on
// different machines. [FinishParts] makes the folder from them.
func ApplyPart(ctx context.Context, m *weights.Model, p *plan.Plan, out string, part apply.Part, o PartOptions) (done *apply.PartDone, err error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if err := part.Check(); err != nil {
		return nil, err
	}
	s, err := openParts(m, p, out, &o.ApplyOptions)
	if err != nil {
		return nil, err
	}
	src, err := s.toApply(ctx, p, &o.ApplyOptions)
	if err != nil {
		return nil, err
	}
	defer func() {
		s.results.Clear()
		err = errors.Join(err, o.Tokens.releaseRounder())
	}()
	return apply.RunPart(ctx, src, p, out, part, o.of())
}

// FinishParts makes the folder from the shards of all parts; see [apply.FinishParts]. It needs neither tokens nor a
// reference.
func FinishParts(ctx context.Context, m *weights.Model, p *plan.Plan, out string, o PartOptions) (man *plan.Manifest, before bool, err error) {
	if ctx == nil {
		return nil, false, parallel.ErrNoContext
	}
	s, err := openParts(m, p, out, &o.ApplyOptions)
	if err != nil {
		return nil, false, err
	}
	options := o.of()
	options.Folder, options.Card = o.Folder, o.card(s, p, nil)
	return apply.FinishParts(ctx, apply.Source{Model: m, Weights: s.weights, Target: s.target}, p, out, options)
}

// openParts opens the source of a plan, and checks the place of the output.
func openParts(m *weights.Model, p *plan.Plan, out string, o *ApplyOptions) (*source, error) {
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
	if err := apply.CheckPlace(m, placed(out, o.Store)); err != nil {
		return nil, err
	}
	return s, s.useReference(o.Reference)
}
