package cli

import "context"

// sign adds to every phase where the power of its layers goes, as a model of the card says by what was
// measured. It looks at every layer's bits, which takes some 10 ms each: it comes after the measuring. A
// card without such a model has a note instead.
func (m *layerMeter) sign(ctx context.Context, e *measuredEnergy) error {
	for i := range e.Phases {
		p := &e.Phases[i]
		if p.Total == nil || p.Total.Run == nil {
			continue
		}
		if e.unsigned = m.components.note; e.unsigned != "" {
			return nil
		}
		source, output, err := m.candidates(ctx, m.before, m.after, p.Tokens)
		if err != nil {
			return err
		}
		run, then := p.Total.Run.Baseline, p.Total.Run.Variants[0]
		s := dissected{
			name: p.Phase, cold: p.Phase == "decode", before: source.Products, after: output.Products,
			info: m.machine.Platform(), seconds: run.Seconds, thenSeconds: then.Seconds,
		}
		if run.SMClock != nil && then.SMClock != nil {
			s.clock, s.thenClock = *run.SMClock, *then.SMClock
		}
		if p.Components, err = m.components.sign(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// signatures of all phases that have one.
func (e *measuredEnergy) signatures() (list []*signature) {
	for _, p := range e.Phases {
		if p.Components != nil {
			list = append(list, p.Components)
		}
	}
	return list
}
