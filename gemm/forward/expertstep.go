package forward

import (
	"context"
	"errors"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// hasExperts reports whether a step has experts.
func hasExperts(step decoder.Step) bool {
	for _, b := range step {
		for _, p := range b.Parts {
			if p.Experts != nil {
				return true
			}
		}
	}
	return false
}

// errExpertsBeside is the error for a step that no supported family has.
var errExpertsBeside = errors.New("experts must be the first part of a step's only branch")

// expertStep computes a step whose branch begins with experts. Every expert processes its tokens of all batches before
// the next expert is loaded. Memory therefore holds one expert, the expert's statistics, and the inputs and outputs of
// all tokens. Each token's outputs are added in the order of the experts.
func (d *Decoder) expertStep(ctx context.Context, step decoder.Step, w Weights, s *State, o Observer) error {
	if len(step) != 1 || step[0].Parts[0].Experts == nil {
		return errExpertsBeside
	}
	rows := s.largestBatch()
	l, err := loadBranch(ctx, w, step[0], sgemm.Dense(rows, d.Hidden, nil))
	if err != nil {
		return err
	}
	e := l.parts[0].experts
	x, y := sgemm.Dense(s.Hidden.Rows, d.Hidden, nil), sgemm.Dense(s.Hidden.Rows, d.Hidden, nil)
	part := func(m sgemm.Matrix, b batch) sgemm.Matrix { return m.Slice(b.row, b.row+b.rows, 0, d.Hidden) }
	p := d.pass(ctx, o)
	var batches []batch
	var tokens [][][]routed // by batch and expert
	for b := range s.batches() {
		in := part(x, b)
		if err := l.norm.apply(p, in, b.hidden(s)); err != nil {
			return err
		}
		if err := p.observe(in, l.first...); err != nil {
			return err
		}
		routes, err := e.route(p, in)
		if err != nil {
			return err
		}
		batches, tokens = append(batches, b), append(tokens, routes)
	}
	for i, network := range e.each {
		var f *ffn // loaded if any token needs it
		for n, b := range batches {
			if len(tokens[n][i]) == 0 {
				continue
			}
			if f == nil {
				if f, err = loadFFN(ctx, w, network, e.neurons); err != nil {
					return err
				}
			}
			if err := e.expert(p, f, tokens[n][i], part(y, b), part(x, b)); err != nil {
				return err
			}
		}
		if f != nil {
			if err := p.finish(f); err != nil {
				return err
			}
		}
	}
	ys := sgemm.Dense(rows, d.Hidden, nil)
	for _, b := range batches {
		p.sequences = b.sequences
		if err := l.addExperts(p, b.hidden(s), ys.Slice(0, b.rows, 0, d.Hidden), part(x, b), part(y, b)); err != nil {
			return err
		}
	}
	return nil
}

// addExperts adds the outputs of all parts for input x to h. experts holds the outputs of the experts. y is a buffer.
func (b branch) addExperts(p *pass, h, y, x, experts sgemm.Matrix) error {
	for i, part := range b.parts {
		out := y
		var err error
		if i == 0 {
			out = experts
			err = part.complete(p, out)
		} else {
			err = part.apply(p, out, x)
		}
		if err != nil {
			return err
		}
		if err := p.rows(h.Rows, func(i int) { addTo(h.Row(i), out.Row(i)) }); err != nil {
			return err
		}
	}
	return nil
}

// ExpertObserver is an [Observer] that is called after an expert's last token of a pass.
type ExpertObserver interface {
	Observer
	// Done is called after the last input of an expert's layers, with the names of the layers that share the input.
	Done(names []string) error
}

// finish tells the observer that an expert has processed all its tokens.
func (p *pass) finish(f *ffn) error {
	o, ok := p.observer.(ExpertObserver)
	if !ok {
		return nil
	}
	for _, layers := range [][]decoder.Linear{f.in.described(), {f.out.Linear}} {
		if err := o.Done(namesOf(layers)); err != nil {
			return err
		}
	}
	return nil
}
