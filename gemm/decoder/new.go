package decoder

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// ErrNoForward is wrapped in New's error for a family that is not in the table of families.
var ErrNoForward = errors.New("no forward pass")

// New describes a model, from its config.json and the layout of its tensors. It fails with ErrNoForward for
// a family that has no entry in the table. It also fails if config.json or a tensor asks for something that a
// Decoder cannot describe.
func New(m *weights.Model, layout *arch.Layout) (*Decoder, error) {
	f, ok := families[layout.Family]
	if !ok {
		return nil, fmt.Errorf("family %s: there is %w for it, so its loss cannot be computed", layout.Family, ErrNoForward)
	}
	if q := layout.Quantised; q.Any() {
		return nil, fmt.Errorf("the checkpoint is quantised (%s), and the forward pass computes with unquantised weights only: "+
			"use the unquantised checkpoint that it was made from", q.Formats())
	}
	c := readConfig(m.Config)
	if names := unclaimed(f, c, layout); len(names) > 0 {
		return nil, fmt.Errorf("tensor %q (%d such in all) is no part of family %s, so what it does to the loss is not known, and the loss cannot be computed", names[0], len(names), layout.Family)
	}
	b := newBuilder(f, c, layout)
	d := b.decoder()
	d.Family = layout.Family
	if err := errors.Join(b.config.err, b.err); err != nil {
		return nil, err
	}
	return d, nil
}
