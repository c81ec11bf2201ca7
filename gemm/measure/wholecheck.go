package measure

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ErrTooLong is the error for sequences longer than a model's limit.
var ErrTooLong = errors.New("give fewer tokens for each sequence")

// defaults fills in the options that are not set, for a model with sequences of at most limit tokens. It returns a note
// if the limit reduced a default.
func (o *WholeOptions) defaults(limit int) (note string) {
	if o.Batches == nil {
		o.Batches = []int{1, 16, 64}
	}
	within := func(usual, most int) int {
		if most < usual {
			note = fmt.Sprintf("the model's sequences have at most %d tokens", limit)
		}
		return max(0, min(usual, most))
	}
	if o.Prompt < 0 {
		if o.Context == 0 {
			o.Context = within(1024, limit)
		}
		return note
	}
	if len(o.Batches) == 0 { // without decode there are no requests
		o.Output = 0
	} else if o.Output == 0 {
		room := limit - o.Prompt
		if o.Prompt == 0 {
			room = limit / 2
		}
		o.Output = within(256, room)
	}
	if o.Prompt == 0 {
		o.Prompt = within(4096, limit-o.Output)
	}
	switch {
	case len(o.Batches) == 0:
	case note != "" && o.Output == 0:
		note += ": the prompt leaves no room for an output, so no request is reported"
	case note != "":
		note += fmt.Sprintf(": a request is assumed to have %d prompt tokens and %d output tokens", o.Prompt, o.Output)
	}
	if o.Context == 0 {
		o.Context = o.Prompt + o.Output/2
	}
	return note
}

// Check returns the errors that [Whole] would return for these models before loading them: a family without a forward
// pass, quantised weights, or sequences longer than the models' limit.
func (o WholeOptions) Check(before, after *weights.Model) error {
	_, err := o.prepare(append([]*weights.Model{before, after}, o.Others...))
	return err
}

// prepare checks the models, source first, and fills in defaults. It returns the note of defaults.
func (o *WholeOptions) prepare(models []*weights.Model) (note string, err error) {
	for i, m := range models {
		if m == nil {
			return "", weights.ErrNoModel
		}
		d, err := o.describe(m)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.Dir, err)
		}
		if i == 0 {
			note = o.defaults(d.Limit)
		}
		for _, s := range []struct {
			name   string
			tokens int
		}{{"prefill", o.Prompt}, {"request", max(0, o.Prompt) + o.Output}, {"decode step", o.Context}} {
			if s.tokens > d.Limit {
				return "", fmt.Errorf("%s: a %s with sequences of %d tokens: the model's limit is %d tokens: %w", m.Dir, s.name, s.tokens, d.Limit, ErrTooLong)
			}
		}
	}
	return note, nil
}

// describe returns a model's decoder. It returns an error if the model's steps cannot be measured.
func (o *WholeOptions) describe(m *weights.Model) (*decoder.Decoder, error) {
	layout, err := arch.Resolve(m, o.Family)
	if err != nil {
		return nil, err
	}
	if q := layout.Quantised; q.Any() {
		return nil, fmt.Errorf("the checkpoint is quantised (%s), and whole models can only be measured with unquantised weights: measure "+
			"its linear layers, without --whole", q.Formats())
	}
	d, err := decoder.New(m, layout)
	if err != nil {
		return nil, err
	}
	return d, nil
}
