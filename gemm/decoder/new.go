package decoder

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ErrNoForward is wrapped by New's error for a family that is not in the table of families.
var ErrNoForward = errors.New("no forward pass")

// New returns the description of a model, from its config.json and the layout of its tensors. Quantised weights have the names
// and shapes of unquantised ones. The error is an ErrNoForward for a family without an entry in the table. It is also an error if
// config.json or a tensor needs an operation that a Decoder cannot describe, or if the values of a quantised weight cannot be
// read.
func New(m *weights.Model, layout *arch.Layout) (*Decoder, error) {
	if m == nil {
		return nil, weights.ErrNoModel
	}
	if layout == nil {
		return nil, fmt.Errorf("%s: there is %w for a model without a layout: get one from arch.Resolve", m.Dir, ErrNoForward)
	}
	f, ok := families[layout.Family]
	if !ok {
		return nil, fmt.Errorf("there is %w for the family %s", ErrNoForward, layout.Family)
	}
	if err := decoded(layout); err != nil {
		return nil, err
	}
	c := readConfig(m.Config)
	if names := unclaimed(f, c, layout); len(names) > 0 {
		return nil, fmt.Errorf("tensor %q is not part of family %s, so its effect is unknown and the model cannot be run (unknown tensors: %d)", names[0], layout.Family, len(names))
	}
	b := newBuilder(f, c, layout)
	d := b.decoder()
	d.Family = layout.Family
	if err := errors.Join(b.config.err, b.err); err != nil {
		return nil, err
	}
	return d, nil
}

// decoded returns an error if the values of a quantised weight cannot be read, or its inputs are scaled.
func decoded(layout *arch.Layout) error {
	const lost = "the model's loss cannot be computed"
	q := layout.Quantised
	if q != nil && q.Unknown != "" {
		return fmt.Errorf("the checkpoint is quantised, and %s: %s", q.Unknown, lost)
	}
	if !q.Any() {
		return nil
	}
	for _, w := range q.Weights {
		if layout.Claims[w.Name] == nil || w.Plain() {
			continue
		}
		if err := w.CanRead(); err != nil {
			return fmt.Errorf("the checkpoint is quantised, and %w: %s", err, lost)
		}
		for _, t := range w.Tensors {
			if strings.HasSuffix(t.Name, ".pre_quant_scale") {
				return fmt.Errorf("tensor %q: scales the layer's inputs, and the forward pass does not support these scales: %s", t.Name, lost)
			}
		}
	}
	return nil
}
